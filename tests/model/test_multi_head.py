"""Multi-head attention."""

from contextlib import nullcontext
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from tests.model.small import draw
from transformer.model.attention import (
    MultiHeadAttention,
    masked_softmax,
    scaled_dot_product_attention,
)
from transformer.model.masks import causal_mask
from transformer.model.positional import RotaryPositions
from transformer.recording import record_attention


def make(*sizes, seed: int = 0, **options) -> MultiHeadAttention:
    torch.manual_seed(seed)
    attention = MultiHeadAttention(*sizes, **options).double()
    for parameter in attention.parameters():
        nn.init.normal_(parameter, std=0.5)
    return attention


def some_mask(*shape: int, seed: int) -> Tensor:
    """Make a random mask in which no row is blind."""
    mask = draw(*shape, seed=seed) > 0
    mask[..., 0] = True
    return mask


def by_the_equations(attention: MultiHeadAttention, x: Tensor, memory: Tensor, mask=None) -> Tensor:
    """Concat(head_1 .. head_h) W^O, with one small matrix per head and projection."""
    layers = (attention.query_projection, attention.key_projection, attention.value_projection)
    heads = []
    for head in range(attention.num_heads):
        parts = []
        for source, layer in zip((x, memory, memory), layers, strict=True):
            size = layer.out_features // attention.num_heads
            rows = slice(head * size, (head + 1) * size)
            part = source @ layer.weight[rows].T
            parts.append(part if layer.bias is None else part + layer.bias[rows])
        mask_of_head = None if mask is None else mask[:, head]
        heads.append(scaled_dot_product_attention(*parts, mask_of_head, scale=attention.scale))
    return attention.output_projection(torch.cat(heads, dim=-1))


@settings(deadline=None, derandomize=True, max_examples=50)
@given(
    sizes=st.tuples(*[st.integers(1, 4)] * 4),
    d_k=st.integers(1, 5),
    d_v=st.integers(1, 5),
    bias=st.booleans(),
    masked=st.booleans(),
    scale=st.sampled_from([None, 1.0]),
)
def test_equals_the_equations_for_any_sizes(sizes, d_k, d_v, bias, masked, scale):
    """d_k and d_v are free, and d_model = 7 is divisible by no number of heads but 1."""
    batch, heads, length, memory_length = sizes
    attention = make(7, heads, d_k, d_v, bias=bias, scale=scale)
    x, memory = draw(batch, length, 7), draw(batch, memory_length, 7, seed=1)
    mask = some_mask(batch, heads, length, memory_length, seed=2) if masked else None
    expected = by_the_equations(attention, x, memory, mask)
    torch.testing.assert_close(attention(x, memory, mask), expected)
    own_mask = some_mask(batch, heads, length, length, seed=3) if masked else None
    expected = by_the_equations(attention, x, x, own_mask)
    torch.testing.assert_close(attention(x, mask=own_mask), expected)
    torch.testing.assert_close(attention(x, is_causal=True), attention(x, mask=causal_mask(length)))


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_equals_torch(cross, bias):
    ours = make(12, 3, bias=bias)
    theirs = nn.MultiheadAttention(12, 3, bias=bias, batch_first=True).double()
    inputs = (ours.query_projection, ours.key_projection, ours.value_projection)
    theirs.in_proj_weight.data.copy_(torch.cat([layer.weight for layer in inputs]))
    theirs.out_proj.load_state_dict(ours.output_projection.state_dict())
    if bias:
        theirs.in_proj_bias.data.copy_(torch.cat([layer.bias for layer in inputs]))
    x = draw(2, 5, 12)
    memory = draw(2, 6, 12, seed=1) if cross else x
    may = some_mask(2, 1, 5, memory.size(1), seed=2)
    with record_attention(ours) as recorded:
        mine = ours(x, memory if cross else None, may)
    must_not = ~may.expand(2, 3, -1, -1).flatten(0, 1)  # their True means masked
    expected, weights = theirs(x, memory, memory, attn_mask=must_not, average_attn_weights=False)
    torch.testing.assert_close(mine, expected)
    torch.testing.assert_close(recorded, {"": weights}, check_device=False)
    unmasked = theirs(x, memory, memory)[0]
    torch.testing.assert_close(ours(x, memory if cross else None), unmasked)


@pytest.mark.parametrize("given", [dict(), dict(d_v=5), dict(d_k=5)])
def test_sizes_left_open_are_d_model_over_heads(given):
    attention = make(12, 4, **given)
    assert (attention.d_k, attention.d_v) == (given.get("d_k", 3), given.get("d_v", 3))
    with pytest.raises(ValueError, match="d_model=10, num_heads=4"):
        MultiHeadAttention(10, 4, **given)


def test_dropout_is_active_in_training_only():
    attention, plain, x = make(8, 2, dropout=0.5), make(8, 2), draw(2, 5, 8)
    assert not torch.allclose(attention(x), attention(x))
    with record_attention(attention) as weights:
        assert not torch.allclose(attention(x), attention(x))
    torch.testing.assert_close(weights[""].sum(-1), torch.ones(2, 2, 5).double())  # before dropout
    assert torch.equal(attention.eval()(x), plain(x))
    assert torch.equal(plain.train()(x), plain.eval()(x))


@pytest.mark.parametrize("shape", [(5,), (5, 5), (2, 1, 1, 5), (2, 4, 5, 5)])
def test_masks_broadcast(shape):
    attention, x, mask = make(8, 4), draw(2, 5, 8), some_mask(*shape, seed=1)
    whole = mask.expand(2, 4, 5, 5)
    torch.testing.assert_close(attention(x, mask=mask), attention(x, mask=whole))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8])
def test_a_mask_must_be_boolean(dtype, monkeypatch):
    monkeypatch.setattr("jaxtyping.config.jaxtyping_disable", True)
    mask, x = causal_mask(3).to(dtype), draw(1, 3, 8)
    attend = partial(scaled_dot_product_attention, x, x, x, mask)
    calls = [
        partial(make(8, 2), x, mask=mask),
        attend,
        partial(attend, need_weights=True),
        partial(masked_softmax, draw(3, 3), mask),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="mask must be of type bool"):
            call()


@pytest.mark.parametrize("options", [dict(), dict(num_kv_heads=2), dict(rotary=RotaryPositions(2))])
def test_a_sequence_needs_no_batch_axis(options):
    attention, x, memory = make(8, 4, **options), draw(5, 8), draw(3, 8, seed=1)
    torch.testing.assert_close(attention(x), attention(x[None])[0])
    torch.testing.assert_close(attention(x, memory), attention(x[None], memory[None])[0])


@pytest.mark.parametrize("length, memory_length", [(3, 5), (5, 3)])
def test_causality_is_the_same_while_recording(length, memory_length):
    attention, x, memory = make(8, 4), draw(2, length, 8), draw(2, memory_length, 8, seed=1)
    expected = attention(x, memory, is_causal=True)
    with record_attention(attention) as weights:
        torch.testing.assert_close(attention(x, memory, is_causal=True), expected)
    assert not weights[""].triu(1).any()


@pytest.mark.parametrize("backend", [SDPBackend.MATH, SDPBackend.FLASH_ATTENTION])
@pytest.mark.parametrize("recorded", [False, True])
def test_a_mask_and_causality_both_hold(backend, recorded):
    attention, x, mask = make(8, 4), draw(2, 5, 8), some_mask(5, 5, seed=1)
    expected = attention(x, mask=mask & causal_mask(5))
    with sdpa_kernel(backend), record_attention(attention) if recorded else nullcontext():
        torch.testing.assert_close(attention(x, mask=mask, is_causal=True), expected)
