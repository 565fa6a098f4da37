"""Feed-forward network, norm and residual wrapper; test_parity.py has the layers."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.model.small import draw
from transformer.model.layers import PositionwiseFeedForward, Residual, make_norm


def roughen(module: nn.Module) -> nn.Module:
    """Make every parameter random, so that biases and gains count; eval mode, float64."""
    generator = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        parameter.data = 0.5 * torch.randn(parameter.shape, generator=generator)
    return module.double().eval()


def watch(module: nn.Module) -> list[torch.Tensor]:
    """Collect the inputs of a module from now on."""
    seen: list[torch.Tensor] = []
    module.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    return seen


def test_feed_forward_is_equation_2():
    network = roughen(PositionwiseFeedForward(4, 7))
    x = draw(2, 3, 4)
    w1, b1, w2, b2 = network.parameters()
    expected = [(x[b, t] @ w1.T + b1).clamp(min=0) @ w2.T + b2 for b in range(2) for t in range(3)]
    torch.testing.assert_close(network(x), torch.stack(expected).view(2, 3, 4))


ACTIVATIONS = {
    "relu": lambda x: x.clamp(min=0),
    "silu": lambda x: x / (1 + (-x).exp()),
    "gelu": lambda x: x * (1 + (x / 2**0.5).erf()) / 2,
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_and_dropout_after_them(name):
    network = roughen(PositionwiseFeedForward(4, 7, dropout=0.5, activation=name))
    dropped, x = watch(network.dropout), draw(2, 3, 4)
    hidden = ACTIVATIONS[name](network.hidden(x))
    torch.testing.assert_close(network(x), network.output(hidden))
    torch.testing.assert_close(dropped, [hidden])
    assert not torch.equal(network.train()(x), network(x))


@pytest.mark.parametrize("name, gate", [("swiglu", F.silu), ("geglu", F.gelu)])
def test_a_gate_multiplies_the_hidden_layer(name, gate):
    network, x = PositionwiseFeedForward(4, 7, activation=name).double(), draw(1, 3, 4)
    expected = network.output(gate(network.gate(x)) * network.hidden(x))
    torch.testing.assert_close(network(x), expected)
    assert sum(p.numel() for p in network.parameters()) == 2 * (4 * 7 + 7) + (7 * 4 + 4)


def test_the_rms_norm_divides_by_the_size_and_does_not_centre():
    norm, x = make_norm("rms", 8, eps=1e-6).double(), draw(3, 8)
    torch.testing.assert_close(norm(x), x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt())


@pytest.mark.parametrize("placement", ["post", "pre"])
def test_residual_adds_and_normalises_in_the_stated_order(placement):
    residual = roughen(Residual(6, 0.5, placement, eps=1e-3))
    dropped, x = watch(residual.dropout), draw(2, 3, 6)
    if placement == "post":
        expected = residual.norm(x + x.sin() * 3)
    else:
        expected = x + residual.norm(x).sin() * 3
    torch.testing.assert_close(residual(x, lambda y: y.sin() * 3), expected)
    made = (x if placement == "post" else residual.norm(x)).sin() * 3
    torch.testing.assert_close(dropped, [made])
