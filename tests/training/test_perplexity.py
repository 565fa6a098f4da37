"""Perplexity: exp of the mean over all tokens, whatever the batches, without dropout."""

import math

import pytest
import torch
import torch.nn.functional as F
from tiny_training import VOCAB_SIZE, make_model, make_pairs

from transformer.data.batching import TokenBatches
from transformer.training.perplexity import perplexity


@pytest.mark.parametrize("batch_tokens", [8, 30, 10_000])
def test_it_is_exp_of_the_mean_cross_entropy(batch_tokens):
    model, pairs = make_model(dropout=0.5), make_pairs(12)
    model.eval()
    losses = []
    for row in range(len(pairs)):  # one sentence at a time, so no padding at all
        source, target = torch.tensor([pairs.source[row]]), torch.tensor(pairs.target[row])
        given = torch.cat([torch.tensor([1]), target[:-1]])[None]
        losses.append(F.cross_entropy(model(source, given)[0], target, reduction="none"))
    expected = torch.cat(losses).mean().exp().item()
    assert perplexity(model, TokenBatches(pairs, batch_tokens)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("training", [True, False])
def test_the_mode_of_the_model_stays_and_no_gradient_is_left(training):
    model, batches = make_model(dropout=0.5).train(training), TokenBatches(make_pairs(12), 30)
    random = torch.get_rng_state()
    assert perplexity(model, batches) == perplexity(model, batches)
    assert all(module.training is training for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.equal(random, torch.get_rng_state())


def test_autocast_comes_near():
    model, batches = make_model(), TokenBatches(make_pairs(12), 30)
    exact = perplexity(model, batches)
    rounded = perplexity(model, batches, torch.autocast("cpu", torch.bfloat16))
    assert rounded != exact and rounded == pytest.approx(exact, rel=0.02)


def test_an_even_guess_has_the_perplexity_of_the_vocabulary_and_a_hopeless_one_is_finite():
    model, batches = make_model(), TokenBatches(make_pairs(12), 30)
    with torch.no_grad():
        model.embedding.weight.zero_()
    assert perplexity(model, batches) == pytest.approx(VOCAB_SIZE, rel=1e-4)
    with torch.no_grad():
        model.embedding.weight.normal_(std=1e4)
    assert 1e100 < perplexity(model, batches) < math.inf
