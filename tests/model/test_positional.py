"""Positions: the paper's sinusoids, those of its code, and learned ones."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer.model.positional import (
    LearnedPositionalEmbedding,
    SinusoidalPositionalEncoding,
    sinusoidal_table,
)


def close(actual: torch.Tensor, expected: list[float], tolerance: float = 1e-6):
    torch.testing.assert_close(actual, torch.tensor(expected), atol=tolerance, rtol=0)


def test_paper_layout_with_four_columns():
    close(
        sinusoidal_table(4, 4).flatten(),
        [0, 1, 0, 1]
        + [0.841471, 0.540302, 0.010000, 0.999950]
        + [0.909297, -0.416147, 0.019999, 0.999800]
        + [0.141120, -0.989992, 0.029996, 0.999550],
    )


def test_paper_layout_with_512_columns():
    table = sinusoidal_table(11, 512)
    close(table[1, :6], [0.841471, 0.540302, 0.821856, 0.569695, 0.801962, 0.597375])
    close(table[1, -2:], [0.00010366, 0.99999999], 1e-8)
    close(table[2, :4], [0.909297, -0.416147, 0.936415, -0.350895])
    close(table[10, :4], [-0.544021, -0.839072, -0.220023, -0.975495])


def test_t2t_layout_puts_sines_before_cosines_and_ends_at_10000():
    close(sinusoidal_table(2, 4, "t2t")[1], [0.841471, 0.000100, 0.540302, 1.000000])
    row = sinusoidal_table(2, 512, "t2t")[1]
    close(row[:3], [0.841471, 0.821779, 0.801805])
    close(row[255:258], [0.0001, 0.540302, 0.569807])


@settings(deadline=None, derandomize=True, max_examples=25)
@given(st.integers(0, 3000), st.integers(1, 5), st.integers(1, 32))
def test_paper_layout_is_the_formula(position, length, d_model):
    table = sinusoidal_table(position + length, d_model)
    assert table.shape == (position + length, d_model) and table.dtype == torch.float32
    for column in range(d_model):
        angle = position / 10_000 ** (2 * (column // 2) / d_model)
        expected = math.cos(angle) if column % 2 else math.sin(angle)
        assert abs(table[position, column].item() - expected) < 1e-6


@pytest.mark.parametrize("layout", ["paper", "t2t"])
def test_norm_and_products_depend_on_the_distance_alone(layout):
    table = sinusoidal_table(1000, 512, layout).double()
    torch.testing.assert_close(
        table.norm(dim=1), torch.full((1000,), 16.0).double(), atol=1e-5, rtol=0
    )
    products = table @ table.T
    for distance in (1, 7, 100):
        assert products.diagonal(distance).std() < 1e-4


def test_products_of_the_paper_layout():
    table = sinusoidal_table(600, 512)
    expected = {0: 256, 1: 249.102, 2: 231.734, 5: 189.597, 10: 173.790, 50: 131.091, 100: 111.950}
    for start in (0, 37, 499):
        for distance, product in expected.items():
            assert (table[start] @ table[start + distance]).item() == pytest.approx(
                product, abs=2e-3
            )


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


@pytest.mark.parametrize("d_model", [1, 3, 7])
def test_odd_widths_end_in_a_sine_without_its_cosine(d_model):
    last = sinusoidal_table(5, d_model)[:, -1]
    rate = 10_000 ** -((d_model - 1) / d_model)
    close(last, [math.sin(position * rate) for position in range(5)])


@pytest.mark.parametrize("d_model", [1, 3, 7])
def test_odd_widths_end_in_zeros_in_the_t2t_layout(d_model):
    table = sinusoidal_table(5, d_model, "t2t")
    assert torch.equal(table[:, :-1], sinusoidal_table(5, d_model - 1, "t2t"))
    assert (table[:, -1] == 0).all()


def test_two_columns_in_the_t2t_layout():
    close(sinusoidal_table(2, 2, "t2t")[1], [math.sin(1), math.cos(1)])


def test_unknown_layout(unchecked):
    with pytest.raises(ValueError, match="layout"):
        sinusoidal_table(3, 4, "halves")


def test_the_table_grows_when_a_longer_sequence_comes():
    encoding = SinusoidalPositionalEncoding(6, length=4)
    x = torch.randn(2, 11, 6)
    torch.testing.assert_close(encoding(x), x + sinusoidal_table(11, 6))
    torch.testing.assert_close(encoding(x[:, :3]), x[:, :3] + sinusoidal_table(3, 6))
    torch.testing.assert_close(
        encoding(x[:, :1], start=50), x[:, :1] + sinusoidal_table(51, 6)[50:]
    )
    assert encoding.state_dict() == {} and not list(encoding.parameters())


def test_the_table_grows_in_its_own_layout():
    encoding = SinusoidalPositionalEncoding(6, length=2, layout="t2t")
    zeros = torch.zeros(1, 9, 6)
    torch.testing.assert_close(encoding(zeros)[0], sinusoidal_table(9, 6, "t2t"))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_positions_keep_the_type_of_the_embeddings(dtype):
    x = torch.zeros(1, 5, 4, dtype=dtype)
    for module in (SinusoidalPositionalEncoding(4, 3), LearnedPositionalEmbedding(4, 8)):
        assert module(x).dtype == dtype


def test_start_moves_both_kinds():
    x = torch.randn(2, 6, 4)
    for module in (SinusoidalPositionalEncoding(4, 9), LearnedPositionalEmbedding(4, 9)):
        whole = module(x)
        for position in range(6):
            step = module(x[:, position : position + 1], start=position)
            assert torch.equal(step, whole[:, position : position + 1])


def test_learned_positions_are_a_table_that_is_trained():
    learned = LearnedPositionalEmbedding(4, 8)
    x = torch.randn(3, 5, 4)
    torch.testing.assert_close(learned(x) - x, learned.embedding.weight[:5].expand(3, 5, 4))
    learned(x).sum().backward()
    gradient = learned.embedding.weight.grad
    assert (gradient[:5] == 3).all() and (gradient[5:] == 0).all()


@pytest.mark.parametrize("length, start", [(9, 0), (1, 8), (3, 6)])
def test_learned_positions_end_with_a_clear_error(length, start):
    learned = LearnedPositionalEmbedding(4, 8)
    with pytest.raises(ValueError, match="only 8 were learned"):
        learned(torch.zeros(1, length, 4), start=start)
    assert learned(torch.zeros(1, 8, 4)).shape == (1, 8, 4)
