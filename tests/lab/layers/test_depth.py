"""Models without a part of the wrapper differ in that part alone; gradients are those of
training."""

import pytest
import torch
from torch import nn

from transformer.lab.layers.depth import PartialResidual, PartialTransformer, gradient_by_layer
from transformer.lab.toys.toy import REVERSE, toy_config
from transformer.model.transformer import Transformer

CONFIG = toy_config(REVERSE, d_model=16, d_ff=24, num_layers=2, num_decoder_layers=3)


def make(kind=PartialTransformer, **options):
    torch.manual_seed(0)
    return kind(CONFIG, **options).double()


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("norm", [True, False])
def test_the_wrapper_by_hand(residual, norm):
    x = torch.randn(2, 3, 8, dtype=torch.float64)
    y = 3 * x - 1 + (x if residual else 0)
    if norm:
        mean, variance = y.mean(-1, keepdim=True), y.var(-1, correction=0, keepdim=True)
        y = (y - mean) / (variance + 1e-6).sqrt()
    wrapper = PartialResidual(8, 0.0, residual, norm, eps=1e-6).double()
    torch.testing.assert_close(wrapper(x, lambda x: 3 * x - 1), y)


def test_with_both_parts_it_is_the_transformer():
    batch = REVERSE.batch(4, seed=0)
    ours, usual = make(), make(Transformer)
    assert ours.state_dict().keys() == usual.state_dict().keys()
    torch.testing.assert_close(
        ours(batch.source, batch.target_input), usual(batch.source, batch.target_input)
    )


@pytest.mark.parametrize("options", [dict(residual=False), dict(norm=False)])
def test_omitted_parts_are_gone_and_a_seed_draws_the_same_matrices(options):
    usual, model = make(Transformer).state_dict(), make(**options)
    assert all(torch.equal(weight, usual[name]) for name, weight in model.state_dict().items())
    norms = sum(isinstance(module, nn.LayerNorm) for module in model.modules())
    assert norms == (2 * 2 + 3 * 3 if options.get("norm", True) else 0)
    flags = {m.residual for m in model.modules() if isinstance(m, PartialResidual)}
    assert flags == {options.get("residual", True)}


def test_gradients_are_those_of_the_loss():
    model, batch = make(Transformer), REVERSE.batch(4, seed=0)
    encoder, decoder = gradient_by_layer(model, batch)
    assert all(parameter.grad is None for parameter in model.parameters())
    logits = model(batch.source, batch.target_input)
    nn.functional.cross_entropy(
        logits.flatten(0, 1), batch.labels.flatten(), ignore_index=0
    ).backward()
    for found, stack in ((encoder, model.encoder), (decoder, model.decoder)):
        for norm, layer in zip(found, stack, strict=True):
            squares = sum(p.grad.pow(2).sum() for p in layer.parameters() if p.ndim == 2)
            assert norm == pytest.approx(squares.sqrt().item())
