"""Rank correlation, effects of removal, gradients, and attention from pronouns to a name."""

import numpy as np
import pytest
import torch

from transformer.data.tokenizer import Tokenizer
from transformer.inference.translator import Translator
from transformer.lab.heads.anaphora import NameLooks, looks_at_name
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


def test_excess_is_taken_at_the_same_distance():
    # Weight 0.8 from distance 1 and 0.2 from distance 2: pronouns attend more to the name on
    # average, but not more than other words at the same distance.
    distance = np.array([1, 1, 1, 2, 2, 2, 3])
    is_pronoun = np.array([True, True, False, True, False, False, True])
    weights = np.where(distance == 1, 0.8, 0.2)[:, None, None]
    sentence = np.array([0, 1, 2, 3, 4, 5, 6])
    looks = NameLooks(weights, is_pronoun, distance, sentence)
    assert looks.excess() == pytest.approx(np.zeros((1, 1)), abs=1e-12)
    more = weights + 0.1 * is_pronoun[:, None, None]
    looks = NameLooks(more, is_pronoun, distance, sentence)
    assert looks.excess() == pytest.approx(0.1)
    assert np.nanmax(np.abs(looks.excess_draws(30) - 0.1)) < 1e-9


def test_looks_are_those_of_the_encoder():
    tokenizer = Tokenizer.train(["Tom he his saw you Tom he his saw you. "] * 9, 272)
    torch.manual_seed(0)
    config = TransformerConfig(272, d_model=8, d_ff=8, num_heads=2, num_layers=2)
    translator = Translator(Transformer(config), tokenizer)
    texts = ["Tom saw his", "you saw Tom", "Tom saw you", "Tom he"]
    assert tokenizer.tokens(tokenizer.encode(texts[0])) == ["Tom", "▁saw", "▁his"]
    looks = looks_at_name(translator, texts, batch_size=1)
    assert looks.distance.tolist() == [1, 1, 2]
    assert looks.is_pronoun.tolist() == [True, False, True]
    assert looks.sentence.tolist() == [0, 1, 1]
    expected = translator.attention(texts[0], "").encoder  # layers, H, S, S
    np.testing.assert_allclose(looks.weights[2], expected[:, :, 2, 0], rtol=1e-5)
    together = looks_at_name(translator, texts)  # padding changes nothing
    np.testing.assert_allclose(together.weights, looks.weights, atol=1e-6)
