"""Feed-forward network, residual wrapper, encoder layer, decoder layer."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention
from transformer.model.layers import DecoderLayer, EncoderLayer, PositionwiseFeedForward, Residual


def draw(*shape: int, seed: int = 0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def roughen(module: nn.Module) -> nn.Module:
    """Make every parameter random, so that biases and gains count; eval mode, float64."""
    generator = torch.Generator().manual_seed(0)
    for parameter in module.parameters():
        parameter.data = 0.5 * torch.randn(parameter.shape, generator=generator)
    return module.double().eval()


def test_feed_forward_is_equation_2():
    network = roughen(PositionwiseFeedForward(4, 7))
    x = draw(2, 3, 4)
    w1, b1, w2, b2 = network.parameters()
    expected = torch.stack(
        [(x[b, t] @ w1.T + b1).clamp(min=0) @ w2.T + b2 for b in range(2) for t in range(3)]
    )
    torch.testing.assert_close(network(x), expected.view(2, 3, 4))
    convolved = F.conv1d(x.transpose(1, 2), w1[..., None], b1).relu()
    convolved = F.conv1d(convolved, w2[..., None], b2).transpose(1, 2)
    torch.testing.assert_close(network(x), convolved)


@pytest.mark.parametrize(
    "name, function",
    [("relu", lambda x: x.clamp(min=0)), ("silu", lambda x: x / (1 + (-x).exp()))]
    + [("gelu", lambda x: x * (1 + (x / 2**0.5).erf()) / 2)],
)
def test_activations(name, function):
    network = roughen(PositionwiseFeedForward(4, 7, activation=name))
    x = draw(2, 3, 4)
    torch.testing.assert_close(network(x), network.output(function(network.hidden(x))))


def test_feed_forward_drops_hidden_units_in_training_only():
    network = roughen(PositionwiseFeedForward(4, 500, dropout=0.5))
    network.output.weight.data.fill_(1.0)
    x = draw(1, 1, 4)
    whole = network(x)
    network.train()
    assert len({network(x)[0, 0, 0].item() for _ in range(5)}) == 5
    plain = roughen(PositionwiseFeedForward(4, 500))
    plain.output.weight.data.fill_(1.0)
    assert torch.equal(plain.train()(x), whole)


def test_feed_forward_drops_after_the_activation():
    network, seen = roughen(PositionwiseFeedForward(4, 7, dropout=0.5, activation="gelu")), []
    network.dropout.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    x = draw(2, 3, 4)
    network(x)
    torch.testing.assert_close(seen[0], F.gelu(network.hidden(x)))


def test_layer_norm_has_biased_variance_and_epsilon_under_the_root():
    """On [1, 0, 0, 0] the unbiased deviation would give 1.5, -0.5."""
    residual = Residual(4, 0.0)
    output = residual(torch.tensor([[[1.0, 0, 0, 0]]]), torch.zeros_like)[0, 0]
    expected = torch.tensor([1.7320, -0.5773, -0.5773, -0.5773])
    torch.testing.assert_close(output, expected, atol=1e-4, rtol=0)
    tiny = Residual(4, 0.0, eps=1e-6)(torch.tensor([[[1e-3, 0, 0, 0]]]), torch.zeros_like)[0, 0, 0]
    assert tiny.item() == pytest.approx(0.75e-3 / (0.1875e-6 + 1e-6) ** 0.5, rel=1e-4)


@pytest.mark.parametrize("placement", ["post", "pre"])
def test_residual_adds_and_normalises_in_the_stated_order(placement):
    residual = roughen(Residual(6, 0.0, placement, eps=1e-3))
    x = draw(2, 3, 6)
    if placement == "post":
        expected = residual.norm(x + x.sin() * 3)
    else:
        expected = x + residual.norm(x).sin() * 3
    torch.testing.assert_close(residual(x, lambda y: y.sin() * 3), expected)


def test_post_norm_is_the_default():
    residual = Residual(6, 0.0)
    output = residual(draw(2, 3, 6).float(), torch.sin)
    torch.testing.assert_close(output.mean(-1), torch.zeros(2, 3), atol=1e-6, rtol=0)


def test_dropout_falls_on_the_sublayer_and_not_on_the_path_around_it():
    torch.manual_seed(0)
    residual = Residual(1000, 0.25, "pre").train()
    x = torch.full((1, 1, 1000), 7.0)
    output = residual(x, torch.ones_like)
    kept = output != 7.0
    assert kept.float().mean().item() == pytest.approx(0.75, abs=0.05)
    torch.testing.assert_close(output[kept], torch.full_like(output[kept], 7 + 1 / 0.75))
    assert (residual.eval()(x, torch.ones_like) == 8).all()


@pytest.mark.parametrize("placement", ["post", "pre"])
def test_dropout_sees_what_the_sublayer_made(placement):
    residual, seen = roughen(Residual(6, 0.5, placement)), []
    residual.dropout.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    x = draw(2, 3, 6)
    residual(x, lambda y: torch.full_like(y, 5.0))
    assert torch.equal(seen[0], torch.full_like(x, 5.0))


def make_parts(placement: str):
    attention = [MultiHeadAttention(8, 2) for _ in range(2)]
    return attention, PositionwiseFeedForward(8, 12), lambda: Residual(8, 0.0, placement)


@pytest.mark.parametrize("placement", ["post", "pre"])
def test_encoder_layer_is_self_attention_then_feed_forward(placement):
    (attention, _), network, make_residual = make_parts(placement)
    layer = roughen(EncoderLayer(attention, network, make_residual))
    first, second = layer.self_attention_residual.norm, layer.feed_forward_residual.norm
    assert first is not second
    x = draw(2, 5, 8)
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])[:, None, None]
    if placement == "post":
        middle = first(x + attention(x, mask=mask))
        expected = second(middle + network(middle))
    else:
        middle = x + attention(first(x), mask=mask)
        expected = middle + network(second(middle))
    torch.testing.assert_close(layer(x, mask), expected)
    maps: list[Tensor] = []
    torch.testing.assert_close(layer(x, mask, maps), expected)
    assert [m.shape for m in maps] == [(2, 2, 5, 5)]


@pytest.mark.parametrize("placement", ["post", "pre"])
def test_decoder_layer_is_self_attention_cross_attention_feed_forward(placement):
    (own, cross), network, make_residual = make_parts(placement)
    layer = roughen(DecoderLayer(own, cross, network, make_residual))
    norms = [
        layer.self_attention_residual.norm,
        layer.cross_attention_residual.norm,
        layer.feed_forward_residual.norm,
    ]
    x, memory = draw(2, 4, 8), draw(2, 6, 8, seed=1)
    target_mask = torch.ones(4, 4, dtype=torch.bool).tril()
    source_mask = torch.tensor([[True] * 6, [True] * 2 + [False] * 4])[:, None, None]
    sublayers = [
        lambda y: own(y, mask=target_mask),
        lambda y: cross(y, memory, source_mask),  # the memory itself is never normalised again
        network,
    ]
    expected = x
    for sublayer, norm in zip(sublayers, norms, strict=True):
        if placement == "post":
            expected = norm(expected + sublayer(expected))
        else:
            expected = expected + sublayer(norm(expected))
    torch.testing.assert_close(layer(x, memory, target_mask, source_mask), expected)
    maps, cross_maps = [], []
    layer(x, memory, target_mask, source_mask, maps, cross_maps)
    assert [m.shape for m in maps + cross_maps] == [(2, 2, 4, 4), (2, 2, 4, 6)]
