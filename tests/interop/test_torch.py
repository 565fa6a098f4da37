"""Weights converted to torch.nn.Transformer and back: both models compute the same."""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.model.small import make_model
from transformer.interop import from_torch, to_torch
from transformer.model.transformer import Transformer

SOURCE = torch.tensor([[3, 4, 5, 6, 2], [7, 8, 2, 0, 0]])
TARGET = torch.tensor([[1, 9, 10, 11], [1, 12, 0, 0]])

make = partial(make_model, dropout=0.0)


def their_logits(model: Transformer, stacks: nn.Transformer) -> torch.Tensor:
    length = TARGET.size(1)
    states = stacks(
        model.positions(model.embedding(SOURCE)),
        model.target_positions(model.embed_target(TARGET)),
        tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),
        src_key_padding_mask=SOURCE == 0,
        memory_key_padding_mask=SOURCE == 0,
    )
    return F.linear(states, model.output_weight)


VARIANTS = [
    dict(),
    dict(norm="pre", activation="gelu"),
    dict(norm="post", final_norm=True, layer_norm_eps=1e-3),
    dict(norm="pre", final_norm=False, activation="silu"),
    dict(attention_bias=False, sharing="none", positions="learned", num_heads=2),
]


@pytest.mark.parametrize("changes", VARIANTS)
def test_theirs_computes_what_ours_computes(changes):
    model = make(**changes)
    stacks = to_torch(model)
    assert not stacks.training
    torch.testing.assert_close(their_logits(model, stacks), model(SOURCE, TARGET))
    with torch.no_grad():  # their fast path
        torch.testing.assert_close(their_logits(model, stacks), model(SOURCE, TARGET))


@pytest.mark.parametrize("changes", VARIANTS)
def test_there_and_back_changes_no_weight(changes):
    model = make(**changes)
    rest = {name: model.config.to_dict()[name] for name in ("positions", "sharing")}
    back = from_torch(to_torch(model), model.embedding.weight, **rest)
    expected, found = model.state_dict(), back.state_dict()
    beside_the_stacks = ("target_embedding", "target_positions", "output", "positions")
    for name in expected:
        if not name.startswith(beside_the_stacks):
            torch.testing.assert_close(found[name], expected[name], rtol=0, atol=0)
    assert back.config.norm == model.config.norm
    assert back.config.activation == model.config.activation


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")
def test_a_model_made_by_torch_computes_the_same(norm_first, bias):
    """PyTorch's default has a final norm on both stacks and one dropout rate."""
    torch.manual_seed(1)
    stacks = nn.Transformer(
        16, 2, 2, 1, 24, dropout=0.3, norm_first=norm_first, bias=bias, batch_first=True
    ).double()
    for parameter in stacks.parameters():
        parameter.data += 0.2 * torch.randn_like(parameter)
    model = from_torch(stacks.eval(), torch.randn(17, 16).double())
    assert not model.training and model.config.final_norm
    c = model.config
    assert c.dropout == c.attention_dropout == c.activation_dropout == 0.3
    torch.testing.assert_close(model(SOURCE, TARGET), their_logits(model, stacks))
    assert model.config == from_torch(to_torch(model), model.embedding.weight).config or not bias


def test_each_rate_of_dropout_reaches_its_place():
    model = make(dropout=0.1, attention_dropout=0.2, activation_dropout=0.3).train()
    stacks = to_torch(model)
    assert stacks.training
    for layer in [*stacks.encoder.layers, *stacks.decoder.layers]:
        assert layer.dropout1.p == layer.dropout2.p == 0.1
        assert layer.self_attn.dropout == 0.2 and layer.dropout.p == 0.3
    last = stacks.decoder.layers[-1]
    assert last.dropout3.p == 0.1 and last.multihead_attn.dropout == 0.2
    config = from_torch(stacks, model.embedding.weight).config
    assert (config.dropout, config.attention_dropout, config.activation_dropout) == (0.1, 0.2, 0.3)


@pytest.mark.parametrize(
    "changes",
    [dict(d_k=3), dict(d_v=5), dict(attention_scale=1.0), dict(num_kv_heads=1)]
    + [dict(positions="rotary"), dict(norm_kind="rms"), dict(activation="swiglu")],
)
def test_what_theirs_cannot_have_is_refused(changes):
    (name,) = changes
    with pytest.raises(ValueError, match=f"{name} must be .* got"):
        to_torch(make(**changes))
