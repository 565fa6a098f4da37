"""The layers of Table 1 reach as far as the table says, and no farther."""

import pytest
import torch
from torch import nn

from transformer.lab.table_1.reach import (
    Convolutions,
    Recurrence,
    gradient_reach,
    self_attention,
    stored_numbers,
)


def reach(layer, distance):
    return gradient_reach(layer, distance, d_model=8)


@pytest.mark.parametrize("kernel, depth, farthest", [(3, 1, 1), (3, 4, 4), (5, 3, 6)])
def test_contiguous_convolutions_reach_a_step_further_with_each_layer(kernel, depth, farthest):
    torch.manual_seed(0)
    layer = Convolutions(8, kernel, depth)
    assert all(reach(layer, d) > 0 for d in range(1, farthest + 1))
    assert reach(layer, farthest + 1) == reach(layer, 3 * farthest) == 0


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_dilated_convolutions_double_their_reach_with_each_layer(depth):
    torch.manual_seed(0)
    layer, farthest = Convolutions(8, 3, depth, dilated=True), 2**depth - 1
    assert all(reach(layer, d) > 0 for d in range(1, farthest + 1))
    assert reach(layer, farthest + 1) == 0


def test_recurrence_fades_and_attention_thins_out():
    torch.manual_seed(0)
    gru, attention = Recurrence(nn.GRU, 8), self_attention(8)
    assert 0 < reach(gru, 30) < 1e-3 * reach(gru, 5)
    assert 3 < reach(attention, 5) / reach(attention, 30) < 12  # about 31 / 6


def test_reach_is_the_norm_of_the_jacobian():
    torch.manual_seed(0)
    layer = Recurrence(nn.LSTM, 8)
    x = torch.randn(1, 4, 8, generator=torch.Generator().manual_seed(5))
    jacobian = torch.autograd.functional.jacobian(lambda x: layer(x)[0, -1], x)[:, 0, 0]
    expected = jacobian.norm().item() / 8**0.5
    assert gradient_reach(layer, 3, 8, seed=5) == pytest.approx(expected, rel=1e-4)


def test_a_layer_that_copies_has_reach_1():
    assert gradient_reach(lambda x: x.flip(1), 7, 16) == pytest.approx(1)


def test_reach_is_measured_where_gradients_are_off():
    with torch.no_grad():
        assert reach(self_attention(8), 3) > 0


def test_convolution_by_hand():
    torch.manual_seed(0)
    layer, x = Convolutions(8, 3), torch.randn(2, 5, 8)
    weight, bias = layer.layers[0].parameters()
    middle = sum(weight[:, :, k] @ x[0, 1 + k] for k in range(3)) + bias
    torch.testing.assert_close(layer(x)[0, 2], middle)
    with pytest.raises(ValueError, match="kernel must be odd.*got 4"):
        Convolutions(8, 4)


def test_stored_numbers_are_counted_once_and_without_weights():
    x = torch.randn(1, 12, 8)
    linear = nn.Linear(8, 5)
    assert stored_numbers(linear, x) == 12 * 8  # its input, for the gradient of the weights
    assert stored_numbers(nn.Sequential(linear, nn.Tanh()), x) == 12 * 8 + 12 * 5
    # Weights written out: one more number for each pair of positions and head.
    for heads in (1, 4):
        attention = self_attention(8, heads)
        fused = [stored_numbers(attention, torch.randn(1, n, 8)) for n in (12, 24)]
        written = [stored_numbers(attention, torch.randn(1, n, 8), maps=[]) for n in (12, 24)]
        assert 1.9 < fused[1] / fused[0] < 2.1
        assert written[1] - 2 * written[0] == heads * (24**2 - 2 * 12**2)
