"""Positions: the paper's sinusoids, those of its code, learned ones, and rotary ones."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.small import draw
from transformer.model.positional import (
    LearnedPositionalEmbedding,
    RotaryPositions,
    SinusoidalPositionalEncoding,
    sinusoidal_table,
)


def close(actual: torch.Tensor, expected: list[float], tolerance: float = 1e-6):
    torch.testing.assert_close(actual, torch.tensor(expected), atol=tolerance, rtol=0)


def test_known_values_of_both_layouts():
    close(sinusoidal_table(2, 4).flatten(), [0, 1, 0, 1, 0.841471, 0.540302, 0.010000, 0.999950])
    close(sinusoidal_table(2, 512)[1, -2:], [0.00010366, 0.99999999], 1e-8)
    close(sinusoidal_table(2, 4, "t2t")[1], [0.841471, 0.000100, 0.540302, 1.000000])
    row = sinusoidal_table(2, 512, "t2t")[1]
    close(row[:3], [0.841471, 0.821779, 0.801805])
    close(row[255:258], [0.0001, 0.540302, 0.569807])
    odd = sinusoidal_table(5, 7, "t2t")
    assert torch.equal(odd[:, :-1], sinusoidal_table(5, 6, "t2t")) and not odd[:, -1].any()


@settings(deadline=None, derandomize=True, max_examples=25)
@given(st.integers(0, 3000), st.integers(1, 5), st.integers(1, 32))
def test_paper_layout_is_the_formula(position, length, d_model):
    table = sinusoidal_table(position + length, d_model)
    assert table.shape == (position + length, d_model) and table.dtype == torch.float32
    for column in range(d_model):
        angle = position / 10_000 ** (2 * (column // 2) / d_model)
        expected = math.cos(angle) if column % 2 else math.sin(angle)
        assert abs(table[position, column].item() - expected) < 1e-6


@pytest.mark.parametrize("shift", [1, 10, 300])
def test_a_shift_is_a_rotation_of_each_pair(shift):
    d_model = 32
    table = sinusoidal_table(1000, d_model).double()
    pairs = table.unflatten(1, (-1, 2))
    rate = 10_000 ** -(torch.arange(0, d_model, 2).double() / d_model)
    cos, sin = (rate * shift).cos(), (rate * shift).sin()
    rotation = torch.stack([torch.stack([cos, sin], -1), torch.stack([-sin, cos], -1)], -2)
    rotated = torch.einsum("fij,pfj->pfi", rotation, pairs[:-shift])
    torch.testing.assert_close(rotated, pairs[shift:], atol=1e-6, rtol=0)


@pytest.mark.parametrize("layout", ["paper", "t2t"])
def test_the_table_grows_when_a_longer_sequence_comes(layout):
    encoding = SinusoidalPositionalEncoding(6, length=4, layout=layout)
    x, table = torch.randn(2, 11, 6), sinusoidal_table(51, 6, layout)
    torch.testing.assert_close(encoding(x), x + table[:11])
    torch.testing.assert_close(encoding(x[:, :3]), x[:, :3] + table[:3])
    torch.testing.assert_close(encoding(x[:, :1], start=50), x[:, :1] + table[50:])
    assert encoding.state_dict() == {} and not list(encoding.parameters())


def test_the_table_may_be_replaced_by_another_thread():
    class Shared(SinusoidalPositionalEncoding):
        def __setattr__(self, name, value):  # another thread always comes right after
            super().__setattr__(name, value[:5] if name == "table" else value)

    assert Shared(4, length=2).rows(0, 9).shape == (9, 4)


def test_half_precision_and_back_leaves_exact_positions():
    encoding = SinusoidalPositionalEncoding(6, length=4)
    assert encoding.half().table.dtype == torch.float16
    assert torch.equal(encoding.float().table, sinusoidal_table(4, 6))


def test_a_table_that_grows_in_a_search_is_fit_for_training():
    rotary, x = RotaryPositions(6, length=4), torch.randn(2, 11, 6, requires_grad=True)
    with torch.inference_mode():
        rotary(x)
    rotary(x).sum().backward()
    assert x.grad.any()


@pytest.mark.parametrize("kind", [SinusoidalPositionalEncoding, LearnedPositionalEmbedding])
def test_start_and_number_types(kind):
    x, module = torch.randn(2, 6, 4), kind(4, 9)
    for position in range(6):
        step = module(x[:, position : position + 1], start=position)
        assert torch.equal(step, module(x)[:, position : position + 1])
    for dtype in (torch.float64, torch.bfloat16, torch.float16):
        assert module(x.to(dtype)).dtype == dtype


def test_learned_positions_are_a_table_that_is_trained():
    learned = LearnedPositionalEmbedding(4, 8)
    x = torch.randn(3, 5, 4)
    torch.testing.assert_close(learned(x) - x, learned.embedding.weight[:5].expand(3, 5, 4))
    learned(x).sum().backward()
    gradient = learned.embedding.weight.grad
    assert (gradient[:5] == 3).all() and (gradient[5:] == 0).all()
    for length, start in [(9, 0), (1, 8), (3, 6)]:
        with pytest.raises(ValueError, match="8 learned"):
            learned(torch.zeros(1, length, 4), start=start)


@settings(deadline=None, derandomize=True, max_examples=25)
@given(st.integers(0, 900), st.integers(0, 900), st.integers(0, 1500), st.integers(1, 6))
def test_the_product_of_rotated_vectors_depends_on_the_distance_alone(i, j, shift, pairs):
    rotary = RotaryPositions(2 * pairs).double()
    query, key = draw(2, 1, 2 * pairs, seed=i + j)
    here = (rotary(query, i) * rotary(key, j)).sum()
    there = (rotary(query, i + shift) * rotary(key, j + shift)).sum()
    torch.testing.assert_close(here, there, atol=1e-3, rtol=0)  # the table holds float32 sines
    torch.testing.assert_close(rotary(query, i).norm(), query.norm(), atol=1e-5, rtol=0)


@pytest.mark.parametrize("prepared", [2, 200])
def test_a_rotated_vector_is_the_complex_product(prepared):
    rotary, x = RotaryPositions(6, prepared), torch.randn(2, 5, 6)
    angles = torch.arange(3, 8)[:, None] * 10_000.0 ** (-torch.arange(0, 6, 2) / 6)
    factors = torch.polar(torch.ones_like(angles), angles)
    rotated = torch.view_as_complex(x.unflatten(-1, (3, 2))) * factors
    torch.testing.assert_close(rotary(x, start=3), torch.view_as_real(rotated).flatten(-2))
