"""The layers of Table 1 reach as far as the table says, and no farther."""

import pytest
import torch
from torch import nn

from transformer.lab.table_1.reach import Recurrence, gradient_reach


def test_reach_is_the_norm_of_the_jacobian():
    torch.manual_seed(0)
    layer = Recurrence(nn.LSTM, 8)
    x = torch.randn(1, 4, 8, generator=torch.Generator().manual_seed(5))
    jacobian = torch.autograd.functional.jacobian(lambda x: layer(x)[0, -1], x)[:, 0, 0]
    expected = jacobian.norm().item() / 8**0.5
    with torch.no_grad():
        assert gradient_reach(layer, 3, 8, seed=5) == pytest.approx(expected, rel=1e-4)
    assert gradient_reach(lambda x: x.flip(1), 7, 16) == pytest.approx(1)
