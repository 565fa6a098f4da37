"""The product of a linear layer: with either library the numbers and gradients are the same."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from transformer.fast import linear as module
from transformer.fast.linear import Linear, linear

HAS_ONEDNN = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


@pytest.fixture(params=["MKL", "oneDNN"])
def calls(request, monkeypatch):
    """Choose the library on any machine; the list collects the shapes of what oneDNN multiplies."""
    if request.param == "oneDNN" and not HAS_ONEDNN:
        pytest.skip("this PyTorch has no oneDNN")
    made, multiply = [], module.one_dnn_product
    monkeypatch.setattr(module, "_HAS_IDLE_UNITS", request.param == "oneDNN")
    monkeypatch.setattr(module, "_FEWEST_MULTIPLICATIONS", 40 * 24 * 32)
    monkeypatch.setattr(
        module, "one_dnn_product", lambda *inputs: made.append(inputs[0].shape) or multiply(*inputs)
    )
    return made


def tensors(*shape, out=24, columns=False):
    torch.manual_seed(0)
    weight = torch.randn(out, shape[-1])
    if columns:
        weight = weight.t().contiguous().t()
    return torch.randn(*shape), weight, torch.randn(out)


@pytest.mark.parametrize("biased, columns", [(True, False), (False, True)])
@pytest.mark.parametrize("shape", [(40, 32), (3, 17, 32), (2, 3, 160, 32), (0, 7), (7,)])
def test_value_and_gradients_are_those_of_the_formula(calls, shape, biased, columns):
    x, weight, bias = tensors(*shape, columns=columns)
    inputs = [x, weight, bias][: 2 + biased]
    leaves = [t.clone().requires_grad_() for t in inputs]
    exact = [t.double().clone().requires_grad_() for t in inputs]
    output, expected = linear(*leaves), F.linear(*exact)
    torch.testing.assert_close(output.double(), expected, atol=1e-4, rtol=1e-4)
    direction = torch.randn(output.shape)
    output.backward(direction)
    expected.backward(direction.double())
    for leaf, reference in zip(leaves, exact, strict=True):
        torch.testing.assert_close(leaf.grad.double(), reference.grad, atol=1e-4, rtol=1e-4)
    with torch.no_grad():
        torch.testing.assert_close(linear(*inputs), output.detach(), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("rows, needs_x, out, products", [
    (40, True, 24, [(40, 32), (40, 24), (24, 40)]),  # the output, and both gradients
    (40, False, 24, [(40, 32), (24, 40)]),
    (40, False, 48, [(40, 32), (32, 40)]),  # the smaller factor, which oneDNN copies, is first
    (30, True, 24, []),  # too small
])  # fmt: skip
def test_large_products_on_the_cpu_and_no_others_go_to_onednn(calls, rows, needs_x, out, products):
    x, weight, bias = tensors(rows, 32, out=out)
    linear(x.requires_grad_(needs_x), weight.requires_grad_(), bias).sum().backward()
    assert (x.grad is not None) == needs_x
    torch.testing.assert_close(weight.grad, x.detach().sum(0).expand(out, -1))
    assert calls == (products if module._HAS_IDLE_UNITS else [])


def test_the_gradient_has_a_gradient(calls):
    x, weight, bias = tensors(60, 32)
    leaf, reference = x.clone().requires_grad_(), x.double().requires_grad_()
    for point, found in ((leaf, linear), (reference, F.linear)):
        parts = [t.to(point.dtype) for t in (weight, bias)]
        (first,) = torch.autograd.grad(found(point, *parts).pow(3).sum(), point, create_graph=True)
        first.pow(2).sum().backward()
    torch.testing.assert_close(leaf.grad.double(), reference.grad, rtol=1e-3, atol=1e-1)


def test_other_types_and_devices_are_left_to_pytorch(calls):
    x, weight, bias = tensors(40, 32)
    assert linear(x.double(), weight.double()).dtype == torch.float64
    assert linear(x.to("meta"), weight.to("meta")).device.type == "meta"
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert linear(x, weight, bias).dtype == torch.bfloat16
    with torch.backends.mkldnn.flags(enabled=False):
        assert torch.equal(linear(x, weight, bias), F.linear(x, weight, bias))
    assert not calls


def test_counters_transforms_and_exports_see_an_ordinary_product(calls):
    x, weight, _ = tensors(40, 32)
    with FlopCounterMode(display=False) as counter:
        linear(x, weight)
    assert counter.get_total_flops() == 2 * 40 * 32 * 24
    rows = torch.func.vmap(lambda row: linear(row, weight))(x.view(2, 20, 32))
    torch.testing.assert_close(rows.flatten(0, 1), F.linear(x, weight))
    jacobian = torch.func.jacrev(lambda row: linear(row, weight).sum(0))(x)
    torch.testing.assert_close(jacobian[:, 3], weight)
    graph = torch.export.export(Linear(32, 24), (x,), strict=False).graph_module
    assert "linear" in str(graph.code) and "mkldnn" not in str(graph.code)
