"""The paper's conclusions, asked of numbers whose answer is known."""

import math

import pytest

from transformer.lab.table_3.claims import (
    CONCLUSIONS,
    Conclusion,
    gains,
    printed,
    seed_distance,
    verdict,
)
from transformer.lab.table_3.study import ROWS


def test_a_gain_is_above_zero_for_the_better_row():
    perplexities = {"base": {1: 4.0, 2: 5.0}, "A1": {2: 10.0, 3: 1.0}}
    assert gains(perplexities, "perplexity", "base", "A1") == pytest.approx([math.log(2)])
    assert gains(perplexities, "BLEU", "base", "A1") == [-5.0]


@pytest.mark.parametrize(
    "second, third, expected",
    [
        ((21, 22), (19, 19), "holds"),
        ((21, 22), (25, 26), "holds in part"),
        ((21, 22), (19, 30), "holds in part"),
        ((25, 22), (19, 30), "cannot tell"),
        ((25, 26), (19, 30), "cannot tell"),
        ((25, 26), (27, 28), "does not hold"),
    ],
)
def test_verdicts(second, third, expected):
    """base is 24 in both seeds; both others are said to be worse."""
    asked = Conclusion("B", "", (("base", "B1"), ("base", "B2")))
    values = {
        "base": {1: 24.0, 2: 24.0},
        "B1": {1: float(second[0]), 2: float(second[1])},
        "B2": {1: float(third[0]), 2: float(third[1])},
    }
    assert verdict(values, "BLEU", asked) == expected


def test_the_papers_own_numbers_bear_its_conclusions_out_and_where_not():
    """Rows (C): eight layers are better in perplexity and worse in BLEU, in the table itself."""
    said = {}
    for metric in ("perplexity", "BLEU"):
        for c in CONCLUSIONS:
            if c.metric in (None, metric):
                said[c.text, metric] = verdict(printed(metric, ROWS), metric, c)
    odd = {key for key, value in said.items() if value != "holds"}
    assert odd == {("bigger models are better", "BLEU")}
    assert said["bigger models are better", "BLEU"] == "holds in part"


def test_the_distance_of_two_seeds_is_a_median():
    values = {"base": {1: 20.0, 2: 22.0}, "E1": {1: 24.0, 2: 24.5}, "A1": {1: 3.0}}
    assert seed_distance(values, "BLEU") == pytest.approx(1.25)
    assert seed_distance(values | {"C3": {1: 1.0, 2: 99.0}}, "BLEU") == pytest.approx(2.0)
    three = {"base": {1: 20.0, 2: 21.0, 3: 24.0}}  # 1, 4 and 3 apart
    assert seed_distance(three, "BLEU") == pytest.approx(3.0)
    squares = {row: {s: math.exp(v) for s, v in seeds.items()} for row, seeds in values.items()}
    assert seed_distance(squares, "perplexity") == pytest.approx(1.25)
    assert math.isnan(seed_distance({"base": {1: 1.0}, "E1": {1: 2.0}}, "BLEU"))


@pytest.mark.parametrize(
    "worse, expected",
    [
        ((23.5, 24.5), "cannot tell"),
        ((22.5, 23.5), "holds"),
        ((25.6, 27.0), "does not hold"),
        ((24.2, 25.2), "cannot tell"),
    ],
)
def test_a_gain_within_the_distance_of_two_seeds_is_none(worse, expected):
    values = {"base": {1: 24.0, 2: 25.0}, "B1": dict(enumerate(worse, 1))}  # seeds 1.0 apart
    assert verdict(values, "BLEU", Conclusion("B", "", (("base", "B1"),))) == expected
