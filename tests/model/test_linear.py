"""The product of a linear layer: whoever multiplies, the numbers and gradients are the same."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils.flop_counter import FlopCounterMode

from transformer.model import linear as module
from transformer.model.linear import Linear, linear

HAS_ONEDNN = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


@pytest.fixture(params=["by MKL", "by oneDNN"])
def calls(request, monkeypatch):
    """Choose the library, whatever this machine is; the list counts oneDNN's products."""
    wanted = request.param == "by oneDNN"
    if wanted and not HAS_ONEDNN:
        pytest.skip("this PyTorch has no oneDNN")
    made, multiply = [], module._multiply
    monkeypatch.setattr(module, "_HAS_IDLE_UNITS", wanted)
    monkeypatch.setattr(module, "_FEWEST_MULTIPLICATIONS", 40 * 24 * 32)
    monkeypatch.setattr(
        module, "_multiply", lambda *inputs: made.append(inputs[0].shape) or multiply(*inputs)
    )
    return made if wanted else None


def tensors(*shape, out=24, columns=False):
    torch.manual_seed(0)
    weight = torch.randn(out, shape[-1])
    if columns:
        weight = weight.t().contiguous().t()
    return torch.randn(*shape), weight, torch.randn(out)


@pytest.mark.parametrize("columns", [False, True], ids=["by rows", "by columns"])
@pytest.mark.parametrize("biased", [True, False], ids=["bias", "no bias"])
@pytest.mark.parametrize("shape", [(40, 32), (3, 17, 32), (2, 3, 160, 32), (1, 7), (0, 7), (7,)])
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


def test_many_rows_on_the_cpu_are_multiplied_by_onednn(calls):
    x, weight, bias = tensors(40, 32)
    linear(x.requires_grad_(), weight.requires_grad_(), bias).sum().backward()
    if calls is not None:
        assert calls == [(40, 32), (40, 24), (24, 40)]  # the output, and both gradients


def test_the_smaller_factor_of_a_weights_gradient_is_the_one_that_is_copied(calls):
    x, weight, bias = tensors(40, 32, out=48)
    leaf = weight.requires_grad_()
    linear(x, leaf, bias).sum().backward()
    torch.testing.assert_close(leaf.grad, x.sum(0).expand(48, -1))
    if calls is not None:
        assert calls == [(40, 32), (32, 40)]


def test_a_small_product_is_left_to_mkl(calls):
    x, weight, bias = tensors(39, 32)
    assert torch.equal(linear(x, weight, bias), F.linear(x, weight, bias))
    if calls is not None:
        assert not calls


def test_only_the_wanted_gradients_are_computed(calls):
    x, weight, bias = tensors(40, 32)
    linear(x, weight.requires_grad_(), bias).sum().backward()
    assert weight.grad is not None and x.grad is None
    if calls is not None:
        assert calls == [(40, 32), (24, 40)]


def test_the_gradient_has_a_gradient(calls):
    x, weight, bias = tensors(60, 32)
    leaf, reference = x.clone().requires_grad_(), x.double().requires_grad_()
    for point, found in ((leaf, linear), (reference, F.linear)):
        parts = [t.to(point.dtype) for t in (weight, bias)]
        (first,) = torch.autograd.grad(found(point, *parts).pow(3).sum(), point, create_graph=True)
        first.pow(2).sum().backward()
    torch.testing.assert_close(leaf.grad.double(), reference.grad, rtol=1e-3, atol=1e-1)


def test_other_kinds_of_numbers_and_places_are_left_to_pytorch(calls):
    x, weight, bias = tensors(40, 32)
    assert linear(x.double(), weight.double()).dtype == torch.float64
    assert linear(x.to("meta"), weight.to("meta")).device.type == "meta"
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert linear(x, weight, bias).dtype == torch.bfloat16
    with torch.backends.mkldnn.flags(enabled=False):
        assert torch.equal(linear(x, weight, bias), F.linear(x, weight, bias))
    if calls is not None:
        assert not calls


def test_whoever_looks_into_the_product_sees_it(calls):
    x, weight, _ = tensors(40, 32)
    with FlopCounterMode(display=False) as counter:
        linear(x, weight)
    assert counter.get_total_flops() == 2 * 40 * 32 * 24
    rows = torch.func.vmap(lambda row: linear(row, weight))(x.view(2, 20, 32))
    torch.testing.assert_close(rows.flatten(0, 1), F.linear(x, weight))
    jacobian = torch.func.jacrev(lambda row: linear(row, weight).sum(0))(x)
    torch.testing.assert_close(jacobian[:, 3], weight)
    layer = Linear(32, 24)
    graph = torch.export.export(layer, (x,), strict=False).graph_module
    assert "linear" in str(graph.code) and "mkldnn" not in str(graph.code)


def test_a_layer_is_an_ordinary_one(calls):
    torch.manual_seed(0)
    layer = Linear(32, 24)
    torch.manual_seed(0)
    plain = torch.nn.Linear(32, 24)
    assert layer.state_dict().keys() == plain.state_dict().keys()
    x = torch.randn(4, 10, 32)
    torch.testing.assert_close(layer(x), plain(x))
