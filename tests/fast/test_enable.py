"""Swapping classes: the same parameters and results, in training and evaluation."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.model.small import make_batch, make_ids, make_model
from transformer import fast
from transformer.fast.packing import PackedAttention, PackedTransformer
from transformer.model.attention import MultiHeadAttention

VARIANTS = {
    "post": {},
    "pre": dict(norm="pre", sharing="none"),
    "rotary": dict(positions="rotary", num_kv_heads=2),
    "zeros first": dict(first_input="zeros", activation="swiglu", d_k=3, d_v=5),
}
BATCHES = {
    "both padded": make_batch(),
    "source padded": (make_ids(6, 2), make_ids(7, 7, seed=1, bos=True)),
    "target padded": (make_ids(6, 6), make_ids(3, 7, seed=1, bos=True)),
}


def count_rows(model) -> list[int]:
    """Collect the numbers of positions in the inputs of feed-forward networks from now on."""
    rows: list[int] = []
    for layer in [*model.encoder, *model.decoder]:
        layer.feed_forward.register_forward_pre_hook(
            lambda _, inputs: rows.append(inputs[0].flatten(0, -2).size(0))
        )
    return rows


def gradients(model, source, target) -> list[torch.Tensor]:
    """Compute a loss and its gradients; padding has no part in the loss."""
    model.zero_grad()
    loss = F.cross_entropy(model(source, target).flatten(0, 1), target.flatten(), ignore_index=0)
    loss.backward()
    return [loss.detach(), *(p.grad.clone() for p in model.parameters())]


def test_parameters_optimizers_and_random_numbers_stay_the_same():
    model = make_model()
    classes = [type(module) for module in model.modules()]
    parameters = list(model.parameters())
    optimizer = torch.optim.SGD(parameters, lr=0.1)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    random = torch.get_rng_state()
    fast.enable(model)
    assert torch.equal(torch.get_rng_state(), random)
    assert all(a is b for a, b in zip(model.parameters(), parameters, strict=True))
    torch.testing.assert_close(dict(model.state_dict()), state, rtol=0, atol=0)
    kinds = {type(module) for module in model.modules()}
    assert {PackedTransformer, PackedAttention, fast.Linear, fast.Dropout} <= kinds
    assert not kinds & {nn.Linear, nn.Dropout, MultiHeadAttention}
    assert fast.is_enabled(model)
    gradients(model.train(), *make_batch())
    optimizer.step()
    assert not torch.equal(model.embedding.weight, state["embedding.weight"])
    fast.disable(model)
    assert [type(module) for module in model.modules()] == classes and not fast.is_enabled(model)


@pytest.mark.parametrize("batch", BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("options", VARIANTS.values(), ids=VARIANTS)
@pytest.mark.parametrize("dtype, rtol", [(torch.float32, 1e-4), (torch.float64, 1e-8)])
def test_results_are_the_same(batch, options, dtype, rtol):
    source, target = batch
    model = make_model(dtype=dtype, dropout=0.0, **options)
    with torch.no_grad():
        expected = model(source, target)
        fast.enable(model)
        torch.testing.assert_close(model(source, target), expected, atol=1e-5, rtol=1e-5)
        fast.disable(model)
    expected = gradients(model.train(), source, target)
    fast.enable(model)
    for model.checkpoint_activations in (False, True):
        for a, b in zip(gradients(model, source, target), expected, strict=True):
            assert (a - b).norm() <= rtol * (b.norm() + 1e-3)  # some gradients are zero


@pytest.mark.parametrize("batch", BATCHES)
def test_padding_is_skipped_in_training_alone(batch):
    source, target = BATCHES[batch]
    model = make_model()
    rows = count_rows(model)
    for training, skip_padding in [(False, True), (True, False), (True, True)]:
        fast.enable(model.train(training), skip_padding)
        model(source, target)
    whole = [source.numel()] * 2 + [target.numel()] * 3
    assert rows == whole * 2 + [(source != 0).sum()] * 2 + [(target != 0).sum()] * 3


class Average(nn.Module):
    """Average all positions that may be attended to: not multi-head attention."""

    def forward(self, x, memory=None, mask=None, is_causal=False):
        weights = torch.ones(x.size(1), (x if memory is None else memory).size(1)).to(x)
        weights = weights.tril() if is_causal else weights
        weights = weights if mask is None else weights * mask[:, 0]
        return weights / weights.sum(-1, keepdim=True) @ (x if memory is None else memory)


class Shift(nn.Module):
    """Add the next position to each: a layer that is no layer of ours."""

    def forward(self, x, *_):
        return x + x.roll(-1, dims=1)


@pytest.mark.parametrize("name, part", [
    ("encoder.0.self_attention", Average()),
    ("decoder.1.self_attention", Average()),
    ("decoder.2.cross_attention", Average()),
    ("encoder.1", Shift()),
])  # fmt: skip
def test_a_replaced_attention_or_layer_is_never_packed(name, part):
    model = make_model(dropout=0.0).train()
    rows = count_rows(model)
    parent, _, child = name.rpartition(".")
    setattr(model.get_submodule(parent), child, part)
    expected = gradients(model, *make_batch())
    fast.enable(model)
    torch.testing.assert_close(gradients(model, *make_batch()), expected)
    assert set(rows) == {12, 14}


@pytest.mark.parametrize("change", [
    lambda layer: layer.compile(backend="eager"),
    lambda layer: setattr(
        layer.self_attention, "forward", MultiHeadAttention.forward.__get__(layer.self_attention)
    ),
])  # fmt: skip
def test_a_compiled_layer_or_an_own_forward_is_never_packed(change, monkeypatch):
    monkeypatch.setattr("jaxtyping.config.jaxtyping_disable", True)  # it cannot be compiled
    model = make_model(dropout=0.0).train()
    expected = gradients(model, *make_batch())
    change(model.decoder[1])
    fast.enable(model)
    torch.testing.assert_close(gradients(model, *make_batch()), expected)


@pytest.mark.parametrize("change", [
    lambda layer: setattr(layer, "bias", None),
    lambda layer: setattr(layer, "forward", lambda x: -F.linear(x, layer.weight, layer.bias)),
    lambda layer: layer.register_full_backward_pre_hook(lambda _, grads: (-grads[0],)),
])  # fmt: skip
def test_a_changed_projection_is_computed_by_itself(change):
    model = make_model(dropout=0.0).train()
    change(model.encoder[0].self_attention.key_projection)
    expected = gradients(model, *make_batch())
    fast.enable(model)
    torch.testing.assert_close(gradients(model, *make_batch()), expected)
