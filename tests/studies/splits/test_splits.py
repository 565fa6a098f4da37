"""Training sets that share more or less with a test set, on pairs made by hand."""

import numpy as np
import pytest

from transformer.data.parallel import Split
from transformer.data.splits import components
from transformer_book.studies.splits.study import draw_halves, training_sets

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


# 12 groups of three pairs with one source, and 12 pairs on their own.
PAIRS = Split(
    [f"e{i // 3}" for i in range(36)] + [f"alone{i}" for i in range(12)],
    [f"g{i}" for i in range(36)] + [f"allein{i}" for i in range(12)],
)


@pytest.mark.parametrize("seed", range(5))
def test_halves_have_relatives_of_their_own_only(seed):
    halves = draw_halves(PAIRS, seed)
    for half in halves:
        assert len(half.test) == len(half.relatives) == 6
        assert half.test.source == half.relatives.source
        assert not set(half.test.target) & set(half.relatives.target)
        assert all(source.startswith("e") for source in half.test.source)
        # One of a component: no test pair has a relative among the test pairs.
        assert len(set(components(half.test.source, half.test.target))) == 6
    assert not set(halves[0].test.source) & set(halves[1].test.source)
    everyone = [pair for half in halves for part in (half.test, half.relatives) for pair in part]
    assert len(set(everyone)) == 24 and set(everyone) <= set(PAIRS)
    assert halves == draw_halves(PAIRS, seed) != draw_halves(PAIRS, seed + 9)
