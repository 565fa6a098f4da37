"""Residual connections in half precision: their type, and what else stays the same."""

import pytest
import torch

from tests.model.small import make_batch, make_model
from transformer import fast
from transformer.fast.residual import HalfResidual, use_half_residuals
from transformer.model.layers import Residual


@pytest.fixture
def model():
    return make_model(dropout=0.0).float().train()


def types_between_layers(model, autocast: bool) -> set[torch.dtype]:
    """Collect the types of the layers' outputs, in the forward and the backward pass."""
    seen: set[torch.dtype] = set()

    def note(*values) -> None:
        seen.update(value.dtype for each in values for value in each)

    hooks = [
        hook
        for layer in (*model.encoder, *model.decoder)
        for hook in (
            layer.register_forward_hook(lambda _, inputs, output: note([output])),
            layer.register_full_backward_hook(lambda _, inputs, outputs: note(outputs)),
        )
    ]
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        model(*make_batch()).sum().backward()
    for hook in hooks:
        hook.remove()
    return seen


@pytest.mark.parametrize("packed", [False, True])
def test_the_sums_between_layers_have_the_type_of_autocast(model, packed):
    if packed:
        fast.enable(model)
    assert types_between_layers(model, autocast=True) == {torch.float32}
    use_half_residuals(model, True)
    assert types_between_layers(model, autocast=True) == {torch.bfloat16}
    assert types_between_layers(model, autocast=False) == {torch.float32}
    assert all(parameter.grad.dtype == torch.float32 for parameter in model.parameters())


@torch.no_grad()
def test_values_are_close_and_the_choice_can_be_undone(model):
    source, target = make_batch()
    with torch.autocast("cpu", torch.bfloat16):
        expected = model(source, target)
        use_half_residuals(model, True)
        assert any(type(module) is HalfResidual for module in model.modules())
        found = model(source, target)
        assert not torch.equal(found, expected)
        torch.testing.assert_close(found, expected, rtol=0.1, atol=0.1)
        use_half_residuals(model, False)
        assert torch.equal(model(source, target), expected)
    assert all(type(module) is not HalfResidual for module in model.modules())
    assert any(type(module) is Residual for module in model.modules())
