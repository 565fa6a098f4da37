"""Rank correlation, effects of removal, and gradients."""

import numpy as np
import pytest
import torch

from transformer.lab.heads.explanation import (
    gradient_norms,
    mean_agreement,
    removal_effects,
)
from transformer.lab.table_3.rank_correlation import (
    spearman,
    spearman_chance,
    spearman_interval,
)
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer


def test_spearman_by_hand():
    # Ranks 1..5 against 2, 1, 4, 3, 5: 1 - 6 * (1 + 1 + 1 + 1) / (5 * 24)
    assert spearman([10, 20, 30, 40, 50], [2.0, 1.0, 4.0, 3.0, 99.0]) == pytest.approx(0.8)
    assert spearman([3, 1, 3, 7], [2.5, 1, 2.5, 4]) == pytest.approx(1)  # ties share their rank
    assert np.isnan(spearman([1, 1, 1], [1, 2, 3]))


def test_chance_and_interval():
    x = np.arange(30)
    noise = np.random.default_rng(0).normal(size=30)
    assert spearman_chance(x, -x, 500) == pytest.approx(1 / 501)  # in either direction
    assert spearman_chance(x, noise, 500) > 0.05
    # With four values, 2 of 24 orders are as strong as a perfect one.
    assert spearman_chance([1, 2, 3, 4], [1, 2, 3, 4], 4000) == pytest.approx(2 / 24, abs=0.02)
    low, high = spearman_interval(x, x + 10 * noise, 500)
    assert low < spearman(x, x + 10 * noise) < high and 0.05 < high - low < 1


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(1)
    config = TransformerConfig(20, d_model=8, d_ff=8, num_heads=2, num_layers=1, dropout=0.3)
    return Transformer(config).eval()


SOURCE, TARGET = torch.tensor([[5, 6, 7, 2]]), torch.tensor([[1, 8, 9]])


def test_removal_is_what_a_hole_in_the_source_does(model):
    holed = SOURCE.clone()
    holed[0, 1] = 0
    memory = model.encode(SOURCE)
    whole = model.decode(TARGET, memory, SOURCE).softmax(dim=-1)[0]
    without = {
        "token": model(holed, TARGET).softmax(dim=-1)[0],
        "vector": model.decode(TARGET, memory, holed).softmax(dim=-1)[0],
    }
    found = {what: removal_effects(model, SOURCE, TARGET, what) for what in without}
    for what, changed in without.items():
        assert found[what].shape == (3, 4)
        torch.testing.assert_close(found[what][:, 1], (changed - whole).abs().sum(-1) / 2)
    assert (found["token"] - found["vector"]).abs().max() > 1e-4


def test_gradients_are_those_of_each_prediction(model):
    labels = torch.tensor([[8, 9, 2]])
    found = gradient_norms(model, SOURCE, TARGET, labels)
    # By finite differences along the gradient's own direction, for one prediction and one token.
    embedded = model.embedding(SOURCE).detach().requires_grad_()

    def log_p(x):
        x = model.positions(x)
        for layer in model.encoder:
            x = layer(x)
        logits = model.decode(TARGET, model.encoder_norm(x), SOURCE)
        return logits.log_softmax(dim=-1)[0, 1, 9]

    (gradient,) = torch.autograd.grad(log_p(embedded), embedded)
    torch.testing.assert_close(found[1], gradient[0].norm(dim=-1))
    assert found.shape == (3, 4)
    assert not model.embedding._forward_hooks


def test_agreement_is_a_mean_over_predictions():
    one = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    other = np.array([[3.0, 5.0, 9.0], [3.0, 2.0, 1.0]])
    np.testing.assert_allclose(mean_agreement([one, one], [other, one]), [0.0, 1.0], atol=1e-12)
