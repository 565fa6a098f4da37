"""Emulated half precision rounds where autocast does, and counts what it loses."""

import pytest
import torch
from torch import nn

from transformer_book.studies.memory.study import LOWEST, HalfPrecision
from transformer_book.studies.sparse.segment_recurrence import SegmentModel

F16, B16 = torch.float16, torch.bfloat16


def gradient(model, context, factor=1.0):
    model.zero_grad()
    tokens = torch.randint(8, (2, 9), generator=torch.Generator().manual_seed(0))
    with context:
        logits, _ = model(tokens)
    loss = nn.functional.cross_entropy(logits.float().flatten(0, 1), tokens.flatten())
    (loss * factor).backward()
    return torch.cat([weight.grad.flatten() for weight in model.parameters()]) / factor


@pytest.mark.parametrize("dtype, factor", [(F16, 1.0), (F16, 2.0**-17), (B16, 1.0)])
def test_it_loses_as_much_as_autocast(dtype, factor):
    torch.manual_seed(0)
    model = SegmentModel(8)
    exact = gradient(model, torch.autocast("cpu", enabled=False), factor)
    real = gradient(model, torch.autocast("cpu", dtype), factor)
    emulated = gradient(model, HalfPrecision(dtype), factor)
    errors = [float((found - exact).norm() / exact.norm()) for found in (real, emulated)]
    assert 0.5 < errors[0] / errors[1] < 2
    assert (errors[1] > 0.1) == (factor < 1)


def test_a_product_is_rounded_forward_and_backward_and_a_sum_is_not():
    weight = nn.Parameter(torch.tensor([[1 + 2**-12]]))
    x = torch.tensor([[1.0]], requires_grad=True)
    with HalfPrecision(F16):
        product = nn.functional.linear(x, weight)
        assert product.item() == 1 and (x + 2**-12).item() == 1 + 2**-12
    product.backward(torch.tensor([[2.0**-24.5]]))  # above half of the smallest, 2^-24
    assert weight.grad.item() == 2**-24 == x.grad.item()


def test_gradients_are_counted_by_size():
    x = torch.ones(1, 4, requires_grad=True)
    with HalfPrecision(F16, count=True) as mode:
        out = torch.matmul(x, torch.eye(4))
    out.backward(torch.tensor([[0.0, 2.0**-26, 1.5, 4.0]]))
    assert (mode.vanished, mode.overflowed) == (1, 0)
    # Counted where it leaves the product, and once more where it reaches x.
    found = {i + LOWEST: n for i, n in enumerate(mode.sizes.tolist()) if n}
    assert found == {-26: 1, 0: 2, 2: 2}
