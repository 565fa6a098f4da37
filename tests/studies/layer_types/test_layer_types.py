"""The layers of Table 1 compute what they should, at the cost that is counted by hand."""

import pytest
import torch
from torch import nn

from transformer_book.studies.layer_types import study
from transformer_book.studies.layer_types.operations import (
    multiply_adds,
    peak_bytes,
    peak_memory,
)
from transformer_book.studies.layer_types.reach import (
    Convolution,
    Recurrence,
    RestrictedAttention,
    SelfAttention,
)


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


@pytest.mark.parametrize(("length", "layers"), [(5, 1), (6, 2), (25, 2), (26, 3), (125, 3)])
def test_the_path_of_causal_convolutions_is_the_paper_s_logarithm(length, layers):
    for depth in (layers - 1, layers):
        stack = nn.Sequential(*(Convolution(4, 5, 5**i, causal=True) for i in range(depth)))
        x = torch.randn(1, length, 4, dtype=torch.double, requires_grad=True)
        stack.double()(x)[0, -1].sum().backward()
        assert x.grad[0, 0].any() == (depth == layers)


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (SelfAttention, lambda n, d: dict(addmm=4 * n * d * d, bmm=2 * n * n * d)),
        (RestrictedAttention, lambda n, d: dict(addmm=4 * n * d * d, bmm=2 * 17 * n * d)),
        (Convolution, lambda n, d: dict(convolution=5 * n * d * d)),
        (lambda d: Recurrence(nn.RNN, d), lambda n, d: dict(addmm=2 * n * d * d)),
    ],
)
def test_multiply_adds(make, wanted):
    for n, d in ((12, 8), (31, 4)):
        assert multiply_adds(make(d), torch.randn(1, n, d)) == wanted(n, d)


def test_a_window_as_wide_as_the_sentence_is_full_attention():
    torch.manual_seed(0)
    full, near, x = SelfAttention(8), RestrictedAttention(8), torch.randn(2, 9, 8)
    near.load_state_dict(full.state_dict())
    torch.testing.assert_close(near(x), full(x))
    far = torch.randn(2, 30, 8)
    assert not torch.allclose(near(far), full(far), atol=1e-3)


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


def test_every_processor_has_the_same_timings():
    found = {}
    for machine, name, rival, times in study.ratios():
        assert times.shape == (study.REPEATS, len(study.LENGTHS)) and (times > 0).all()
        found.setdefault(machine, []).append((name, rival))
    assert len(found) >= 2 and len({tuple(each) for each in found.values()}) == 1
