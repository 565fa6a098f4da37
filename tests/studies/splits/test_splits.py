"""Training sets that share more or less with a test set, on pairs made by hand."""

import numpy as np

from transformer.data.parallel import Split
from transformer_book.studies.splits.study import training_sets

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
