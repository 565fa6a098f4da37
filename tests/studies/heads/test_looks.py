"""Weights between words that belong together, beside others at the same distance."""

import numpy as np
import pytest
import torch

from transformer.data.tokenizer import Tokenizer
from transformer.inference.translator import Translator
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer_book.studies.what_heads_learn.looks import (
    Looks,
    from_its,
    from_make,
    from_possessive,
    looks_at_name,
    looks_between,
    place_of,
    well_translated,
)


def looks(weights, linked, group, sentence=None):
    sentence = np.arange(len(linked)) if sentence is None else sentence
    return Looks(weights[:, None, None], linked, group, sentence, np.array(["w"] * len(linked)))


@pytest.fixture(scope="module")
def translator():
    tokenizer = Tokenizer.train(["Tom he his saw you Tom he his saw you. "] * 9, 272)
    torch.manual_seed(0)
    config = TransformerConfig(272, d_model=8, d_ff=8, num_heads=2, num_layers=2)
    return Translator(Transformer(config), tokenizer)


def test_excess_is_taken_at_the_same_distance():
    # Weight 0.8 from distance 1 and 0.2 from distance 2: pronouns attend more to the name on
    # average, but not more than other words at the same distance.
    distance = np.array([1, 1, 1, 2, 2, 2, 3])
    linked = np.array([True, True, False, True, False, False, True])
    weights = np.where(distance == 1, 0.8, 0.2)
    assert looks(weights, linked, distance).excess() == pytest.approx(np.zeros((1, 1)), abs=1e-12)
    more = looks(weights + 0.1 * linked, linked, distance)
    assert more.excess() == pytest.approx(0.1)
    assert np.nanmax(np.abs(more.excess_draws(30) - 0.1)) < 1e-9


def test_chance_is_that_of_links_shuffled_within_groups():
    group, linked = np.repeat([0, 1], 20), np.tile([True, False], 20)
    assert looks(0.5 * group, linked, group).chance(50).max() < 1e-12  # only groups differ
    random = np.random.default_rng(0).random(40)
    lucky, sure = looks(random, linked, group), looks(random + linked, linked, group)
    assert 0.02 < np.median(lucky.chance(200)) < 0.3
    assert sure.chance(200).max() < sure.excess().max()


def test_looks_at_a_name_are_those_of_the_encoder(translator):
    texts = ["Tom saw his", "you saw Tom", "Tom saw you", "Tom he"]
    tokenizer = translator.tokenizer
    assert tokenizer.tokens(tokenizer.encode(texts[0])) == ["Tom", "▁saw", "▁his"]
    found = looks_at_name(translator, texts, batch_size=1)
    assert found.word.tolist() == ["▁he", "▁saw", "▁his"]
    assert found.linked.tolist() == [True, False, True]
    assert found.sentence.tolist() == [0, 1, 1]
    assert found.group[0] == found.group[1] != found.group[2]  # by distance, across sentences
    expected = translator.attention(texts[0], "").encoder  # layers, H, S, S
    np.testing.assert_allclose(found.weights[2], expected[:, :, 2, 0], rtol=1e-5)
    together = looks_at_name(translator, texts)  # padding changes nothing
    np.testing.assert_allclose(together.weights, found.weights, atol=1e-6)


def test_looks_within_a_sentence(translator):
    text = "Tom saw you he"
    maps = translator.attention(text, "").encoder
    found = looks_between(translator, [text], lambda labels: [(0, 2)])
    assert found.linked.tolist() == [True, False] and found.word.tolist() == ["Tom", "▁saw"]
    np.testing.assert_allclose(found.weights[1], maps[:, :, 1, 3], rtol=1e-5)
    found = looks_between(translator, [text], lambda labels: [(0, 2)], same="key")
    assert found.linked.tolist() == [True, False, False]
    np.testing.assert_allclose(found.weights[2], maps[:, :, 3, 2], rtol=1e-5)
    with pytest.raises(ValueError, match="no sentence"):
        looks_between(translator, [text], lambda labels: [])


def test_links_are_found_by_their_words():
    labels = ["That", "▁makes", "▁me", "▁very", "▁happy", "▁his", "."]
    assert from_make(labels) == [(1, 4)] and from_possessive(labels) == [(5, 6)]
    assert from_make(["▁made", "▁happy"]) == [] == from_possessive(["▁his"])
    assert from_its(["Tom", "▁its", "."]) == [(1, 0)]


def test_a_word_of_several_tokens_is_found_at_its_first():
    labels = ["The", "▁L", "aw", "▁app", "lic", "ation", ",", "▁Law", "s", "."]
    words = {"The": 0, "Law": 1, "application": 3, "Laws": 7}
    assert {word: place_of(labels, word) for word in words} == words
    with pytest.raises(ValueError, match="'lication' is no word"):
        place_of(labels, "lication")


def test_sentences_are_kept_if_a_reference_is_what_the_model_says(translator, monkeypatch):
    pairs = [("you saw Tom", "a"), ("Tom he", "b"), ("Tom saw you", "c"), ("Tom saw you", "d")]

    def first_to_last(labels):
        return [(0, len(labels) - 1)] if "Tom" in labels[0] else []

    def translate(texts, beam_size):
        assert texts == ["Tom he", "Tom saw you"] and beam_size == 4
        return ["b", "d"]

    monkeypatch.setattr(translator, "translate", translate)
    found = well_translated(translator, pairs, first_to_last)
    assert found == [(2, "Tom saw you", "d"), (1, "Tom he", "b")]
    monkeypatch.setattr(translator, "translate", lambda texts, beam_size: ["b", "x"])
    assert well_translated(translator, pairs, first_to_last) == [(1, "Tom he", "b")]
