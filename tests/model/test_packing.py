"""Packing: the padding is gone, and nothing else is different."""

import pytest
import torch

from transformer.model.config import TransformerConfig
from transformer.model.packing import UNPACKED, Packing
from transformer.model.transformer import Transformer
from transformer.training.loss import TranslationLoss

IDS = torch.tensor([[5, 6, 7, 2], [8, 2, 0, 0], [9, 2, 0, 0]])


def test_real_positions_are_taken_in_order_and_put_back_in_their_places():
    packing = Packing.of(IDS)
    x = torch.randn(3, 4, 6)
    packed = packing.pack(x)
    torch.testing.assert_close(packed, torch.stack([*x[0], *x[1, :2], *x[2, :2]]))
    padded = packing.pad(packed)
    torch.testing.assert_close(padded, x * (IDS != 0)[:, :, None])


def test_values_and_gradients_are_right_to_second_order():
    packing, real = Packing.of(IDS), (IDS != 0)[:, :, None].double()
    x = torch.randn(3, 4, 2, dtype=torch.double, requires_grad=True)
    packed = torch.randn(8, 2, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(packing.pack, x)
    assert torch.autograd.gradcheck(packing.pad, packed)
    assert torch.autograd.gradgradcheck(lambda x: packing.pad(packing.pack(x).pow(2)), x)
    (gradient,) = torch.autograd.grad(packing.pack(x).pow(2).sum(), x)
    torch.testing.assert_close(gradient, 2 * x * real)


def test_without_much_padding_nothing_is_packed():
    full = torch.ones(10, 10, dtype=torch.long)
    full[0, 5:] = 0  # 95 of 100 are real
    x = torch.randn(10, 10, 3)
    for packing in (Packing.of(full), UNPACKED):
        assert packing.pack(x) is x and packing.pad(x) is x
    full[1:4, 5:] = 0  # 80 of 100
    assert len(Packing.of(full).pack(x)) == 80


def test_where_looking_is_dear_or_forbidden_nothing_is_packed():
    assert Packing.of(IDS.to("meta")).rows is None
    found = []

    def look(x):
        found.append(Packing.of(IDS).rows)
        return x

    torch.func.vmap(look)(torch.ones(2))
    assert found == [None]


@pytest.fixture
def model():
    torch.manual_seed(0)
    config = TransformerConfig(50, d_model=16, d_ff=32, num_heads=2, num_layers=2, dropout=0.0)
    return Transformer(config).double()


@pytest.fixture
def batch():
    torch.manual_seed(1)
    source = torch.randint(3, 50, (4, 9))
    labels = torch.randint(3, 50, (4, 7))
    for ids, lengths in ((source, (9, 3, 5, 1)), (labels, (2, 7, 4, 1))):
        for row, length in zip(ids, lengths, strict=True):
            row[length - 1] = 2
            row[length:] = 0
    target = torch.cat([torch.ones(4, 1, dtype=torch.long), labels[:, :-1]], dim=1)
    return source, target.masked_fill(labels == 0, 0), labels


VARIANTS = {
    "post": {},
    "pre": dict(norm="pre"),
    "rotary": dict(positions="rotary"),
    "shared keys": dict(num_kv_heads=1),
    "gated": dict(activation="swiglu"),
    "zeros first": dict(first_input="zeros"),
}


@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("checkpointed", [False, True])
def test_training_on_real_positions_alone_is_the_same_training(batch, options, checkpointed):
    torch.manual_seed(0)
    sizes = dict(d_model=16, d_ff=32, num_heads=2, num_layers=2, dropout=0.0)
    model = Transformer(TransformerConfig(50, **sizes | options)).double()
    model.checkpoint_activations = checkpointed
    rows, found = count_feed_forward_rows(model), {}
    for packed, expected in ((True, {18, 14}), (False, {36, 28})):
        model.skip_padding = packed
        model.zero_grad()
        loss, likelihood = TranslationLoss(model)(*batch)
        loss.backward()
        gradients = {name: p.grad for name, p in model.named_parameters()}
        found[packed] = loss, likelihood, gradients
        assert rows == expected
        rows.clear()
    for a, b in zip(found[True][:2], found[False][:2], strict=True):
        torch.testing.assert_close(a, b, rtol=1e-7, atol=0)
    for name, gradient in found[False][2].items():
        torch.testing.assert_close(found[True][2][name], gradient, rtol=1e-6, atol=1e-9, msg=name)


def count_feed_forward_rows(model):
    """The numbers of positions that the position-wise networks are asked for from now on."""
    seen = set()
    for layer in [*model.encoder, *model.decoder]:
        layer.feed_forward.register_forward_pre_hook(
            lambda _, inputs: seen.add(inputs[0].flatten(0, -2).size(0))
        )
    return seen


def test_in_evaluation_whole_batches_pass_through_the_layers(model, batch):
    rows = count_feed_forward_rows(model.eval())
    source, target, _ = batch
    model(source, target)
    assert rows == {36, 28}
    model.train().attention_maps(source, target)
    assert rows == {36, 28}
    model(source, target)
    assert rows == {36, 28, 18, 14}
