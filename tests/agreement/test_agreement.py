"""Every version of torch and Python computes the same, within the tolerance that is stated here.

Measured against Python 3.11 with torch 2.13.0: nothing differs in Python 3.12 and 3.13 with torch
2.15.0; with torch 2.4.0 in Python 3.12, logits by 3e-6, losses by 1e-7 and gradient norms by
1.5e-7 of themselves, and no translation. The tolerance leaves room for other processors.
"""

import json

from measure import GOLDEN, differences, measure

# Logits and weights: absolute. Losses and norms: as a share. Translations: not a single one.
TOLERANCE = {
    "greedy": 0,
    "beam": 0,
    "logits": 2e-4,
    "losses": 1e-5,
    "gradient_norms": 1e-4,
    "seeded_weights": 1e-6,
}


def test_this_version_agrees_with_the_golden_record():
    found = differences(measure(), json.loads(GOLDEN.read_text(encoding="utf-8")))
    assert found.keys() == TOLERANCE.keys()
    assert {name: value for name, value in found.items() if not value <= TOLERANCE[name]} == {}
