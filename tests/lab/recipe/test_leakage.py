"""Training sets that share more or less with a test set, on pairs made by hand."""

import numpy as np
import pytest

from transformer.data.parallel import Split
from transformer.data.splits import components
from transformer.lab.recipe.leakage import draw_relatives, recall, training_sets
from transformer.lab.recipe.simple_translators import NearestSentence

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
def test_relatives_are_related_and_strangers_are_not(seed):
    drawn = draw_relatives(make_pairs(), 6, seed)
    assert len(drawn.test) == len(drawn.relatives) == len(drawn.strangers) == 6
    assert drawn.test.source == drawn.relatives.source
    assert not set(drawn.test.target) & set(drawn.relatives.target)
    everyone = [*drawn.test, *drawn.relatives, *drawn.strangers]
    assert len(set(everyone)) == 18 and set(everyone) <= set(make_pairs())
    assert not set(drawn.strangers.source) & set(drawn.test.source)
    assert all(source.startswith("e") for source in drawn.strangers.source)
    # One of a component: no test pair has a relative among the test pairs.
    assert len(set(components(drawn.test.source, drawn.test.target))) == 6
    assert (
        drawn == draw_relatives(make_pairs(), 6, seed) != draw_relatives(make_pairs(), 6, seed + 9)
    )
