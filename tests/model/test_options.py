"""What the options that came after the paper compute, and what they leave alone."""

import pytest
import torch

from tests.model.small import draw, make_batch, make_ids, make_model
from transformer.model.attention import MultiHeadAttention
from transformer.model.config import TransformerConfig
from transformer.model.positional import RotaryPositions

LATER = dict(norm="pre", norm_kind="rms", activation="swiglu", positions="rotary", num_kv_heads=2)


@torch.no_grad()
@pytest.mark.parametrize("positions, ordered", [("rotary", True), ("none", False)])
def test_rotary_positions_bring_order_and_none_does_not(positions, ordered):
    model = make_model(positions=positions)
    source, target = make_ids(5), make_ids(4, seed=1, bos=True)
    assert torch.allclose(model(source, target), model(source.flip(1), target)) != ordered


@torch.no_grad()
def test_rotary_self_attention_sees_distances_and_cross_attention_sees_no_positions():
    model = make_model(positions="rotary")
    attention, x = model.encoder[0].self_attention, draw(1, 6, 16)
    scores = []
    for start in (0, 40):
        key, _ = attention.project_memory(x, start)
        scores.append(attention.project_query(x, start) @ key.transpose(-2, -1))
    torch.testing.assert_close(*scores, atol=1e-4, rtol=0)
    assert all(layer.cross_attention.rotary is None for layer in model.decoder)
    layers = [*model.encoder, *model.decoder]
    assert all(layer.self_attention.rotary is model.rotary for layer in layers)
    with pytest.raises(ValueError, match="d_k must be even.*3"):
        TransformerConfig(10, d_model=12, num_heads=4, positions="rotary")
    with pytest.raises(ValueError, match="size must be even.*5"):
        RotaryPositions(5)


@torch.no_grad()
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("cross", [False, True])
def test_shared_heads_are_equal_heads_written_once(groups, cross):
    torch.manual_seed(0)
    few = MultiHeadAttention(16, 4, d_k=3, d_v=5, num_kv_heads=groups).double()
    full = MultiHeadAttention(16, 4, d_k=3, d_v=5).double()
    weights = few.state_dict()
    for name, weight in weights.items():
        if name.startswith(("key", "value")):
            by_head = weight.unflatten(0, (groups, -1))
            weights[name] = by_head.repeat_interleave(4 // groups, 0).flatten(0, 1)
    full.load_state_dict(weights)
    x, memory = draw(2, 2, 6, 16)
    inputs = (x, memory if cross else None, torch.ones(6, 6, dtype=torch.bool).tril())
    torch.testing.assert_close(few(*inputs), full(*inputs))


def test_groups_must_be_equal():
    with pytest.raises(ValueError, match="num_heads must be divisible by num_kv_heads.*4.*3"):
        MultiHeadAttention(16, 4, num_kv_heads=3)
    with pytest.raises(ValueError, match="num_heads must be divisible by num_kv_heads.*8.*3"):
        TransformerConfig(10, num_kv_heads=3)


@torch.no_grad()
@pytest.mark.parametrize("first_input, depends", [("token", True), ("zeros", False)])
def test_with_zeros_the_first_input_is_not_learned(first_input, depends):
    source, target = make_batch()
    model = make_model(first_input=first_input, sharing="none", positions="none")
    before = model(source, target)
    model.target_embedding.weight[1] += 1.0
    assert torch.allclose(before, model(source, target)) != depends
