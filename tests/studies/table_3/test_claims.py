"""The paper's conclusions, tested on numbers whose verdict is known."""

import math

import numpy as np
import pytest
from scipy.stats import ttest_rel

from transformer_book.statistics import paired_interval
from transformer_book.studies.choices.claims import (
    CONCLUSIONS,
    Conclusion,
    gains,
    printed,
    support,
    verdict,
)
from transformer_book.studies.choices.study import ROWS


def test_a_gain_is_above_zero_for_the_better_row():
    perplexities = {"base": {1: 4.0, 2: 5.0}, "A1": {2: 10.0, 3: 1.0}}
    assert gains(perplexities, "perplexity", "base", "A1") == pytest.approx([math.log(2)])
    assert gains(perplexities, "BLEU", "base", "A1") == [-5.0]


SPREAD = np.array([-0.3, 0.1, 0.4, -0.2])


@pytest.mark.parametrize(
    "first, second, counts, expected",
    [
        (-2, -3, (2, 0), "holds"),
        (-2, 3, (1, 1), "holds in part"),
        (-2, 0, (1, 0), "holds in part"),
        (0, 0, (0, 0), "undecided"),
        (0, 3, (0, 1), "does not hold"),
        (2, 3, (0, 2), "does not hold"),
    ],
)
def test_verdicts(first, second, counts, expected):
    """Both rows are said to be worse than base; the numbers are their distances in BLEU."""
    asked = Conclusion("B", "", (("base", "B1"), ("base", "B2")))
    base = np.array([24.0, 22.0, 27.0, 25.0])
    rows = {"base": base, "B1": base + first + SPREAD, "B2": base + second - SPREAD}
    values = {row: dict(enumerate(map(float, scores), 1)) for row, scores in rows.items()}
    assert support(values, "BLEU", asked) == counts
    assert verdict(values, "BLEU", asked) == expected


def test_the_interval_is_that_of_the_paired_t_test():
    one, other = np.array([24.0, 22.0, 27.0, 25.0]), np.array([23.5, 21.9, 25.6, 24.1])
    asked = ttest_rel(one, other)
    found = paired_interval(list(one - other), 0.9)
    assert found == pytest.approx(tuple(asked.confidence_interval(0.9)))


def test_a_single_seed_supports_nothing_and_contradicts_nothing():
    assert paired_interval([0.7]) == (-math.inf, math.inf)
    asked = Conclusion("B", "", (("base", "B1"), ("base", "B2")))
    values = {"base": {1: 24.0, 2: 25.0}, "B1": {1: 20.0}, "B2": {2: 30.0}}
    assert support(values, "BLEU", asked) == (0, 0)
    assert verdict(values, "BLEU", asked) == "undecided"


@pytest.mark.parametrize("seeds", [2, 3, 4])
@pytest.mark.parametrize("conclusion", CONCLUSIONS, ids=lambda c: c.text)
def test_rows_without_a_difference_rarely_get_a_verdict(conclusion, seeds):
    """All rows share one distribution: at most 5% of studies may find anything."""
    random, metric, studies = np.random.default_rng(0), conclusion.metric or "BLEU", 2000
    rows = sorted({row for pair in conclusion.pairs for row in pair})
    wrong = 0
    for scores in np.exp(random.normal(3, 0.05, size=(studies, len(rows), seeds))):
        values = {row: dict(enumerate(found)) for row, found in zip(rows, scores, strict=True)}
        wrong += verdict(values, metric, conclusion) != "undecided"
    # Of 21 tests, some are beyond two standard errors by chance.
    assert wrong / studies <= 0.05 + 3 * math.sqrt(0.05 * 0.95 / studies)


def test_the_papers_own_numbers_support_all_conclusions_but_one():
    """Rows (C): eight layers are better in perplexity and worse in BLEU, in the table itself."""
    said = {}
    for metric in ("perplexity", "BLEU"):
        paper = printed(metric, ROWS)
        for c in CONCLUSIONS:
            if c.metric in (None, metric):
                said[c.text, metric] = {gains(paper, metric, *p)[0] > 0 for p in c.pairs}
    odd = {key for key, better in said.items() if better != {True}}
    assert odd == {("bigger models are better", "BLEU")}
    assert said["bigger models are better", "BLEU"] == {True, False}
