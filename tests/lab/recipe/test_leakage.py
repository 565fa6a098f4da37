"""Training sets that share more or less with a test set, on pairs made by hand."""

import numpy as np
import pytest

from transformer.data.parallel import Split
from transformer.data.splits import components
from transformer.lab.recipe.leakage import RECORD, draw_halves, recall, training_sets
from transformer.lab.recipe.record_leakage import SEEDS, SPLITS
from transformer.lab.recipe.simple_translators import NearestSentence
from transformer.recipes.record import read_record

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
    low, gain, high = record["fine_tuning"]["gain"]
    means = [np.mean([run[name] for run in record["fine_tuning"]["runs"]])
             for name in ("relatives", "strangers")]  # fmt: skip
    assert low < gain < high and gain == pytest.approx(means[0] - means[1], abs=0.02)
