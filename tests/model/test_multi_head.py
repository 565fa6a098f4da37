"""Multi-head attention."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention, scaled_dot_product_attention


def make(*sizes, seed: int = 0, **options) -> MultiHeadAttention:
    torch.manual_seed(seed)
    attention = MultiHeadAttention(*sizes, **options).double()
    for parameter in attention.parameters():
        nn.init.normal_(parameter, std=0.5)
    return attention


def draw(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def by_the_equations(attention: MultiHeadAttention, x: Tensor, memory: Tensor, mask=None) -> Tensor:
    """Concat(head_1 .. head_h) W^O, with one small matrix a head and projection."""
    matrices = attention.in_projection.weight.split(attention.sizes)
    biases = [None] * 3
    if attention.in_projection.bias is not None:
        biases = attention.in_projection.bias.split(attention.sizes)
    heads = []
    for head in range(attention.num_heads):
        parts = []
        for source, matrix, bias in zip((x, memory, memory), matrices, biases, strict=True):
            size = len(matrix) // attention.num_heads
            rows = slice(head * size, (head + 1) * size)
            part = source @ matrix[rows].T
            parts.append(part if bias is None else part + bias[rows])
        mask_of_head = None if mask is None else mask[:, head]
        heads.append(scaled_dot_product_attention(*parts, mask_of_head, scale=attention.scale))
    return attention.out_projection(torch.cat(heads, dim=-1))


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
    mask = draw(batch, heads, length, memory_length, seed=2) > 0 if masked else None
    expected = by_the_equations(attention, x, memory, mask)
    torch.testing.assert_close(attention(x, memory, mask), expected)
    own_mask = draw(batch, heads, length, length, seed=3) > 0 if masked else None
    torch.testing.assert_close(
        attention(x, mask=own_mask), by_the_equations(attention, x, x, own_mask)
    )


def test_one_head_with_identity_projections_is_equation_1():
    attention = MultiHeadAttention(5, 1).double()
    for part in attention.in_projection.weight.data.split(5):
        part.copy_(torch.eye(5))
    attention.out_projection.weight.data.copy_(torch.eye(5))
    for layer in (attention.in_projection, attention.out_projection):
        nn.init.zeros_(layer.bias)
    x, memory = draw(2, 3, 5), draw(2, 4, 5, seed=1)
    expected = scaled_dot_product_attention(x, memory, memory)
    torch.testing.assert_close(attention(x, memory), expected)


@pytest.mark.parametrize("cross", [False, True])
@pytest.mark.parametrize("bias", [False, True])
def test_equals_torch(cross, bias):
    ours = make(12, 3, bias=bias)
    theirs = nn.MultiheadAttention(12, 3, bias=bias, batch_first=True).double()
    theirs.in_proj_weight.data.copy_(ours.in_projection.weight)
    theirs.out_proj.load_state_dict(ours.out_projection.state_dict())
    if bias:
        theirs.in_proj_bias.data.copy_(ours.in_projection.bias)
    x = draw(2, 5, 12)
    memory = draw(2, 6, 12, seed=1) if cross else x
    may = draw(2, 1, 5, memory.size(1), seed=2) > -0.5
    may[..., 0] = True  # theirs gives NaN for a row that sees nothing
    maps: list[Tensor] = []
    mine = ours(x, memory if cross else None, may, maps)
    must_not = ~may.expand(2, 3, -1, -1).flatten(0, 1)  # their True means masked
    expected, weights = theirs(x, memory, memory, attn_mask=must_not, average_attn_weights=False)
    torch.testing.assert_close(mine, expected)
    torch.testing.assert_close(maps[0], weights)
    unmasked = theirs(x, memory, memory)[0]
    torch.testing.assert_close(ours(x, memory if cross else None), unmasked)


def test_asking_for_weights_does_not_change_the_output():
    attention = make(8, 2)
    x = draw(2, 5, 8)
    mask = draw(2, 1, 5, 5, seed=1) > 0
    maps: list[Tensor] = []
    torch.testing.assert_close(attention(x, mask=mask, maps=maps), attention(x, mask=mask))
    assert len(maps) == 1 and maps[0].shape == (2, 2, 5, 5)
    torch.testing.assert_close(maps[0].sum(-1), mask.any(-1).expand(2, 2, 5).double())


@pytest.mark.parametrize("maps", [None, []])
def test_a_position_that_may_see_nothing_gets_the_output_bias_alone(maps):
    attention = make(8, 2)
    x = draw(1, 4, 8).requires_grad_()
    mask = torch.ones(4, 4, dtype=torch.bool)
    mask[1] = False
    output = attention(x, mask=mask, maps=maps)
    assert torch.equal(output[0, 1], attention.out_projection.bias)
    gradients = torch.autograd.grad(output.sin().sum(), [x, *attention.parameters()])
    assert all(gradient.isfinite().all() for gradient in gradients)


@pytest.mark.parametrize("sizes", [dict(), dict(d_k=3), dict(d_v=3)])
def test_d_model_that_heads_do_not_divide(sizes):
    with pytest.raises(ValueError, match="d_model=10, num_heads=4"):
        MultiHeadAttention(10, 4, **sizes)
    assert make(10, 4, 3, 2)(draw(1, 2, 10)).shape == (1, 2, 10)


def test_sizes_left_open_are_d_model_over_heads():
    attention = make(12, 4)
    assert (attention.d_k, attention.d_v) == (3, 3)
    attention = make(12, 4, d_v=5)
    assert (attention.d_k, attention.d_v) == (3, 5)
    attention = make(12, 4, d_k=5)
    assert (attention.d_k, attention.d_v) == (5, 3)


@pytest.mark.parametrize("heads", [1, 2, 8])
def test_number_of_heads_does_not_change_number_of_parameters(heads):
    counts = [
        sum(p.numel() for p in MultiHeadAttention(16, heads, bias=bias).parameters())
        for bias in (False, True)
    ]
    assert counts == [4 * 16 * 16, 4 * 16 * 16 + 4 * 16]


@pytest.mark.parametrize("with_maps", [False, True])
def test_dropout_is_active_in_training_only(with_maps):
    attention = make(8, 2, dropout=0.5)
    x = draw(2, 5, 8)
    plain = make(8, 2)(x)

    def run() -> Tensor:
        return attention(x, maps=[] if with_maps else None)

    assert not torch.allclose(run(), run())
    attention.eval()
    torch.testing.assert_close(run(), plain)


def test_attention_without_dropout_is_the_same_in_training():
    attention = make(8, 2)
    x = draw(2, 5, 8)
    assert torch.equal(attention.train()(x), attention.eval()(x))
