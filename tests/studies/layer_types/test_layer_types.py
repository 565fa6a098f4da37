"""The layers of Table 1 compute what they should, at the cost that is counted by hand."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from transformer_book.studies.layer_types.layer_types import (
    KERNEL,
    NEIGHBOURHOOD,
    ROWS,
    Convolution,
    path_length,
    reaches,
)
from transformer_book.studies.layer_types.operations import (
    multiply_adds,
    peak_bytes,
    peak_memory,
    sequential_steps,
)
from transformer_book.studies.layer_types.scaling_fit import crossover, fit_terms


@pytest.mark.parametrize(
    "options, offsets",
    [
        (dict(kernel=5, gap=2), (-4, -2, 0, 2, 4)),
        (dict(kernel=3, causal=True), (-2, -1, 0)),
        (dict(kernel=2, gap=3, causal=True), (-3, 0)),
    ],
)
def test_convolution_by_hand(options, offsets):
    torch.manual_seed(0)
    layer, x = Convolution(4, **options), torch.randn(1, 9, 4)
    (conv,), rows = layer.layers, []
    for t in range(9):
        seen = [(k, t + offset) for k, offset in enumerate(offsets) if 0 <= t + offset < 9]
        rows.append(sum((conv.weight[:, :, k] @ x[0, place] for k, place in seen), conv.bias))
    torch.testing.assert_close(layer(x)[0], torch.stack(rows))


HALF, WIDTH = KERNEL // 2, NEIGHBOURHOOD
# The least number of layers over a distance m, and the multiply-adds of n positions of size d.
FORMULAS = {
    "self-attention": (lambda m: 1, lambda n, d: dict(addmm=4 * n * d * d, bmm=2 * n * n * d)),
    "recurrent": (lambda m: m + 1, lambda n, d: dict(addmm=2 * n * d * d)),
    "convolution, dilated": (
        lambda m: math.ceil(math.log(m + 1, HALF + 1) - 1e-9),
        lambda n, d: dict(convolution=KERNEL * n * d * d),
    ),
    "self-attention, restricted": (
        lambda m: math.ceil(m / (WIDTH // 2)),
        lambda n, d: dict(addmm=4 * n * d * d, bmm=2 * WIDTH * n * d),
    ),
    "convolution, contiguous": (
        lambda m: math.ceil(m / HALF),
        lambda n, d: dict(convolution=KERNEL * n * d * d),
    ),
    "convolution, separable": (
        lambda m: math.ceil(m / HALF),
        lambda n, d: dict(convolution=KERNEL * n * d + n * d * d),
    ),
}


@pytest.mark.parametrize("name", ROWS)
def test_path_length_is_the_least_number_of_hops(name):
    for distance in (1, 2, 3, 4, 7, 8, 9, 16, 17, 26, 27, 50):
        assert path_length(ROWS[name].hops, distance) == FORMULAS[name][0](distance), distance
    assert reaches(ROWS[name].hops(9, 4), 8, 4, back=True) == (name != "recurrent")


@pytest.mark.parametrize("name", ROWS)
def test_multiply_adds_and_steps_of_every_row(name):
    for n, d in ((12, 8), (24, 8), (31, 4)):
        assert multiply_adds(ROWS[name].make(d), torch.randn(1, n, d)) == FORMULAS[name][1](n, d)
    steps = [sequential_steps(ROWS[name].make(8), torch.randn(1, n, 8)) for n in (10, 20, 30)]
    # A recurrence needs a product, a sum and a tanh at each position.
    growth = 3 * 10 if name == "recurrent" else 0
    assert steps[2] - steps[1] == steps[1] - steps[0] == growth and steps[0] <= 8 + 3 * growth


def test_steps_are_the_longest_chain():
    x = torch.randn(4, 4)
    assert sequential_steps(lambda x: x + 1 + 2 + 3, x) == 3
    assert sequential_steps(lambda x: (x + 1) + (x * 2), x) == 2  # the two are independent
    assert sequential_steps(lambda x: x.T.view(2, 8)[:, :3] + 1, x.T) == 1  # views cost nothing
    assert sequential_steps(lambda x: (x + 1).mul_(2).add_(3), x) == 3  # in place
    assert sequential_steps(lambda x: (x @ x).softmax(-1), x) == 2
    assert sequential_steps(lambda x: (x + 1 + 2, x + 1)[1], x) == 1  # an unused result


def test_steps_where_an_addition_takes_two_numbers():
    x = torch.randn(1, 5, 16)
    assert sequential_steps(lambda x: x @ x.mT, x, sums=True) == 1 + 4  # 16 products
    assert sequential_steps(nn.Linear(16, 3), torch.randn(5, 16), sums=True) == 1 + 5  # and a bias
    assert sequential_steps(lambda x: x.softmax(-1), x, sums=True) == 4 + 1 + 4 + 1
    conv = nn.Conv1d(16, 2, 3, bias=False)
    assert sequential_steps(lambda x: conv(x.mT), x, sums=True) == 1 + 6  # 48 products


def test_peak_memory_by_hand():
    x, n = torch.randn(1, 10, 6), 10 * 6 * 4

    class Chain(nn.Module):
        def forward(self, x):
            return ((x + 1) * 2) - 3

    assert peak_memory(Chain(), x, backward=False) == 2 * n  # the sum is freed before the last
    linear = nn.Linear(6, 6)
    gradients = 4 * (6 * 6 + 6) + n  # of weight, bias and input; the output is freed by then
    assert n <= peak_memory(linear, x, backward=False) < n + 16
    assert gradients <= peak_memory(linear, x) < gradients + 16
    assert peak_bytes(lambda: x.view(2, 30), [x]) == 0


def test_terms_are_whole_numbers():
    n, d = np.array([(n, d) for n in (8, 64, 500) for d in (16, 512)]).T
    found = fit_terms(n, d, 3 * n * d + 4 * n * d**2 + 2 * n**2 * d)
    assert found == pytest.approx({(1, 1): 3, (1, 2): 4, (2, 1): 2, (2, 2): 0}, abs=1e-6)


def test_crossover():
    sizes, flat = np.array([16, 32, 64, 128, 256]), np.full(5, 100.0)
    assert crossover(sizes, sizes, flat) == pytest.approx(100)
    assert crossover(sizes, flat + 1, flat) == 0
    assert crossover(sizes, flat, sizes) is None  # larger at first, smaller at the end
    touched = [50.0, 200.0, 50.0, 200.0, 200.0]
    assert 64 < crossover(sizes, touched, flat) < 128  # the last crossing counts
