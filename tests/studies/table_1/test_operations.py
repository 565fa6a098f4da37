"""Multiply-adds, steps and memory agree with counts by hand."""

import pytest
import torch
from torch import nn

from transformer_book.studies.layer_types.layer_types import (
    KERNEL,
    NEIGHBOURHOOD,
    ROWS,
    RestrictedAttention,
    SelfAttention,
)
from transformer_book.studies.layer_types.operations import (
    multiply_adds,
    peak_bytes,
    peak_memory,
    sequential_steps,
)
from transformer_book.studies.layer_types.reach import Recurrence
from transformer_book.studies.layer_types.study import allocator_peak

COUNTS = {
    "self-attention": lambda n, d: dict(addmm=4 * n * d * d, bmm=2 * n * n * d),
    "recurrent": lambda n, d: dict(addmm=2 * n * d * d),
    "convolution, dilated": lambda n, d: dict(convolution=KERNEL * n * d * d),
    "self-attention, restricted": lambda n, d: dict(
        addmm=4 * n * d * d, bmm=2 * NEIGHBOURHOOD * n * d
    ),
    "convolution, contiguous": lambda n, d: dict(convolution=KERNEL * n * d * d),
    "convolution, separable": lambda n, d: dict(convolution=KERNEL * n * d + n * d * d),
}


@pytest.mark.parametrize("name", ROWS)
def test_multiply_adds_and_steps_of_every_row(name):
    for n, d in ((12, 8), (24, 8), (31, 4)):
        assert multiply_adds(ROWS[name].make(d), torch.randn(1, n, d)) == COUNTS[name](n, d)
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
    attention = [
        sequential_steps(SelfAttention(8), torch.randn(1, n, 8), sums=True) for n in (16, 32, 64)
    ]
    assert attention[1] - attention[0] == attention[2] - attention[1] == 3  # max, sum, mean


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


@pytest.mark.parametrize(
    "make", [SelfAttention, RestrictedAttention, lambda d: Recurrence(nn.GRU, d)]
)
def test_peak_memory_agrees_with_the_allocator_and_changes_no_gradient(make):
    layer, x = make(32), torch.randn(1, 128, 32)
    assert peak_memory(layer, x) == pytest.approx(allocator_peak(layer, x), rel=0.01)
    layer(x).sum().backward()
    before = [weight.grad for weight in layer.parameters()]
    kept = [gradient.clone() for gradient in before]
    peak_memory(layer, x)
    for weight, same, value in zip(layer.parameters(), before, kept, strict=True):
        assert weight.grad is same and torch.equal(same, value)
