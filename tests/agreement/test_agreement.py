"""Every version of torch and Python computes the same, within the tolerance that is stated here.

Measured against Python 3.11 with torch 2.13.0: nothing differs in Python 3.12 and 3.13 with torch
2.15.0; with torch 2.4.0 in Python 3.12, logits by 3e-6, losses by 1e-7 and gradient norms by
1.5e-7 of themselves, and no translation. The tolerance leaves room for other processors.
"""

import copy
import json

import pytest
from measure import GOLDEN, SENTENCES, TRAINING_STEPS, differences, measure

# Logits and weights: absolute. Losses and norms: as a share. Translations: not a single one.
TOLERANCE = {
    "greedy": 0,
    "beam": 0,
    "logits": 2e-4,
    "losses": 1e-5,
    "gradient_norms": 1e-4,
    "seeded_weights": 1e-6,
}


@pytest.fixture(scope="module")
def golden():
    return json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_this_version_agrees_with_the_golden_record(golden):
    found = differences(measure(), golden)
    assert found.keys() == TOLERANCE.keys()
    assert {name: value for name, value in found.items() if not value <= TOLERANCE[name]} == {}


def test_the_golden_record_is_not_trivial(golden):
    assert len(golden["losses"]) == TRAINING_STEPS
    assert golden["losses"][-1] < golden["losses"][0]
    assert min(golden["gradient_norms"]) > 1e-3
    assert max(map(abs, golden["logits"])) > 1
    assert len(set(golden["beam"])) == len(SENTENCES) and golden["beam"] != golden["greedy"]


def test_a_difference_is_seen(golden):
    for name, allowed in TOLERANCE.items():
        other = copy.deepcopy(golden)
        other[name][1] = "Ja." if allowed == 0 else other[name][1] * 1.1 + 1e-3
        found = differences(other, golden)
        assert found[name] > allowed, name
        assert all(found[rest] == 0 for rest in found.keys() - {name})
