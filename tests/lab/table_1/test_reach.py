"""The layers of Table 1 reach as far as the table says, and no farther."""

import pytest
import torch
from torch import nn

from transformer.lab.table_1.layer_types import SelfAttention
from transformer.lab.table_1.reach import (
    Recurrence,
    gradient_reach,
    stored_numbers,
)


def test_reach_is_the_norm_of_the_jacobian():
    torch.manual_seed(0)
    layer = Recurrence(nn.LSTM, 8)
    x = torch.randn(1, 4, 8, generator=torch.Generator().manual_seed(5))
    jacobian = torch.autograd.functional.jacobian(lambda x: layer(x)[0, -1], x)[:, 0, 0]
    expected = jacobian.norm().item() / 8**0.5
    with torch.no_grad():
        assert gradient_reach(layer, 3, 8, seed=5) == pytest.approx(expected, rel=1e-4)
    assert gradient_reach(lambda x: x.flip(1), 7, 16) == pytest.approx(1)


@pytest.mark.parametrize("heads", [1, 4])
def test_stored_numbers_are_counted_once_and_without_weights(heads):
    x = torch.randn(1, 12, 8)
    linear = nn.Linear(8, 5)
    assert stored_numbers(linear, x) == 12 * 8  # its input, for the gradient of the weights
    assert stored_numbers(nn.Sequential(linear, nn.Tanh()), x) == 12 * 8 + 12 * 5
    # Unfused attention stores one more number for each pair of positions and head.
    fused, written = (
        [stored_numbers(SelfAttention(8, kind, heads), torch.randn(1, n, 8)) for n in (12, 24)]
        for kind in (True, False)
    )
    assert 1.9 < fused[1] / fused[0] < 2.1
    assert written[1] - 2 * written[0] == heads * (24**2 - 2 * 12**2)
