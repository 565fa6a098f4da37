"""Training sets that share more or less with a test set, on pairs made by hand."""

import numpy as np
import pytest
import torch
from sacrebleu.metrics import BLEU

from transformer.data.corpora import load_corpus
from transformer.data.corpora.local import require_file
from transformer.data.corpora.tatoeba import read_pairs
from transformer.data.parallel import Split
from transformer.data.splits import components
from transformer.inference.translator import Translator
from transformer.recipes.record import read_record
from transformer_book.studies.recording import SHIPPED, stored_texts
from transformer_book.studies.simple_translators import NearestSentence
from transformer_book.studies.splits import leakage as record_leakage
from transformer_book.studies.splits.leakage import (
    RECORD,
    SEEDS,
    SPLITS,
    Half,
    draw_halves,
    recall,
    training_sets,
)

# The test pair is the first. The second has its source, the third its target, the fourth is
# connected to it through the second only, the fifth not at all.
CHAIN = Split(
    ["a small dog", "a small dog", "one little dog", "the dog there", "some blue bird"],
    ["ein kleiner Hund", "ein Hündchen", "ein kleiner Hund", "ein Hündchen", "ein blauer Vogel"],
)


def test_each_training_set_loses_what_it_must_and_nothing_else():
    sets = {name: rows.tolist() for name, rows in training_sets(CHAIN, np.array([0])).items()}
    assert sets == {
        "every other pair": [False, True, True, True, True],
        "no source of the test": [False, False, True, True, True],
        "no sentence of the test": [False, False, False, True, True],
        "nothing connected": [False, False, False, False, True],
    }


def test_recall_looks_only_where_it_may():
    sets = training_sets(CHAIN, np.array([0]))
    found = recall(NearestSentence(CHAIN), ["a small dog"], sets)
    assert {name: texts[0] for name, texts in found.items()} == {
        "every other pair": "ein Hündchen",
        "no source of the test": "ein kleiner Hund",  # the third and the fourth both contain "dog"
        "no sentence of the test": "ein Hündchen",
        "nothing connected": "ein blauer Vogel",
    }


def make_pairs():
    """12 groups of three pairs with one source, and 12 pairs on their own."""
    pairs = [(f"e{i}", f"g{i}.{k}") for i in range(12) for k in range(3)]
    pairs += [(f"alone{i}", f"allein{i}") for i in range(12)]
    return Split(*map(list, zip(*pairs, strict=True)))


def bleu_of(texts, references):
    return BLEU().corpus_score(texts, [references]).score


def random_references(pairs, seed):
    """The references of a random test set, as the seed draws it."""
    test = np.random.default_rng(seed).choice(len(pairs), record_leakage.TEST_PAIRS, replace=False)
    return [pairs.target[i] for i in test]


def test_the_translations_of_the_memory_are_kept(corpus, monkeypatch):
    monkeypatch.setattr(record_leakage, "TEST_PAIRS", 9)
    pairs, texts = corpus.train, {}
    second = [text.replace("sieht", "erblickt") for text in pairs.target]
    pairs = Split(pairs.source * 2, pairs.target + second)
    found = record_leakage.measure_memory(NearestSentence(pairs), 3, texts)
    right = random_references(pairs, 3)
    assert len(set(found["bleu"].values())) > 1
    for name, score in found["bleu"].items():
        assert bleu_of(texts[f"split 3, {name}"], right) == pytest.approx(score)


def test_fine_tuned_translations_are_in_the_order_of_the_halves(monkeypatch):
    halves = [Half(Split([f"s{i}"], [f"t{i}"]), Split([f"r{i}"], [f"u{i}"])) for i in (1, 2)]
    trained = []

    class Echo(Translator):
        model, tokenizer = torch.nn.Linear(1, 1), None

        def __init__(self):
            pass

        def __call__(self, texts, beam_size):
            return [f"{text} after {trained[-1]}" for text in texts]

    monkeypatch.setattr(record_leakage, "encode_pairs", lambda _, pairs: pairs.source)
    monkeypatch.setattr(record_leakage, "TokenBatches", lambda *_: [None])
    monkeypatch.setattr(record_leakage, "train", lambda _, pairs, *__: trained.extend(pairs))
    assert record_leakage.fine_tune(Echo(), tuple(halves), seed=0) == {
        "relatives": ["s1 after r1", "s2 after r2"],
        "strangers": ["s1 after r2", "s2 after r1"],
    }


@pytest.mark.parametrize("seed", range(5))
def test_halves_have_relatives_of_their_own_only(seed):
    halves = draw_halves(make_pairs(), seed)
    for half in halves:
        assert len(half.test) == len(half.relatives) == 6
        assert half.test.source == half.relatives.source
        assert not set(half.test.target) & set(half.relatives.target)
        assert all(source.startswith("e") for source in half.test.source)
        # One of a component: no test pair has a relative among the test pairs.
        assert len(set(components(half.test.source, half.test.target))) == 6
    assert not set(halves[0].test.source) & set(halves[1].test.source)
    everyone = [pair for half in halves for part in (half.test, half.relatives) for pair in part]
    assert len(set(everyone)) == 24 and set(everyone) <= set(make_pairs())
    assert halves == draw_halves(make_pairs(), seed) != draw_halves(make_pairs(), seed + 9)


def test_the_record_holds_what_the_chapter_reads():
    record = read_record(RECORD)
    assert [run["seed"] for run in record["memory"]] == list(SPLITS)
    for run in record["memory"]:
        names = list(training_sets(CHAIN, np.array([0])))
        assert list(run["bleu"]) == list(run["pairs"]) == names
        pairs, low, worth, high = [*run["pairs"].values()], *run["worth"]
        assert pairs == sorted(pairs, reverse=True) and low < worth < high
        assert worth == pytest.approx(run["bleu"][names[0]] - run["bleu"][names[-1]], abs=0.02)
    assert [run["seed"] for run in record["fine_tuning"]["runs"]] == list(SEEDS)
    for run in record["fine_tuning"]["runs"]:
        assert max(run["strangers"], record["fine_tuning"]["shipped"]) < run["relatives"]


def test_the_recorded_scores_follow_from_the_translations():
    record, texts = read_record(RECORD), stored_texts(RECORD)
    pairs = read_pairs(require_file("deu.txt.gz", SHIPPED))
    for run in record["memory"]:
        right = random_references(pairs, run["seed"])
        for name, score in run["bleu"].items():
            found = texts[f"split {run['seed']}, {name}"]
            assert bleu_of(found, right) == pytest.approx(score, abs=1e-4)
    right = [text for half in draw_halves(load_corpus(SHIPPED).test) for text in half.test.target]
    tuned = record["fine_tuning"]
    assert bleu_of(texts["shipped"], right) == pytest.approx(tuned["shipped"], abs=1e-4)
    for run in tuned["runs"]:
        for name in ("relatives", "strangers"):
            again = bleu_of(texts[f"{name}, seed {run['seed']}"], right)
            assert again == pytest.approx(run[name], abs=1e-4)
