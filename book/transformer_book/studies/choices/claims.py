"""The paper's conclusions from Table 3, tested on runs of our own.

A conclusion is a list of pairs of rows, the better one first. Rows trained with the same seed are
compared, and the interval over seeds decides, so that the answer can be "undecided". The rule was
written down before the runs of "table-3-settled".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from transformer_book.statistics import paired_interval
from transformer_book.studies.choices.study import ROWS

Metric = Literal["perplexity", "BLEU"]
Verdict = Literal["holds", "holds in part", "undecided", "does not hold"]

# Value of a metric by row and seed.
Values = Mapping[str, Mapping[int, float]]


@dataclass(frozen=True)
class Conclusion:
    """A sentence of the paper, as comparisons of rows that can come out either way."""

    rows: str  #: the rows it is about, as the table names them
    text: str  #: the conclusion in short
    pairs: tuple[tuple[str, str], ...]  #: rows (better, worse)
    metric: Metric | None = None  #: the paper's argument; None for both


#: The five observations of section 6.2 that order rows, and the one of section 5.4. The sixth,
#: that learned positions give nearly identical results, orders no rows.
CONCLUSIONS = (
    Conclusion("A", "one head is worse than eight", (("base", "A1"),)),
    Conclusion("A", "too many heads are worse, too", (("base", "A4"),)),
    Conclusion("B", "shorter keys hurt", (("base", "B1"), ("base", "B2"))),
    Conclusion(
        "C",
        "bigger models are better",
        (("C3", "base"), ("base", "C2"), ("C2", "C1"), ("base", "C4"), ("C5", "base"),
         ("base", "C6"), ("C7", "base")),
    ),
    Conclusion("D", "dropout helps", (("base", "D1"),)),
    Conclusion("D", "label smoothing hurts perplexity", (("D3", "base"), ("base", "D4")),
               "perplexity"),
    Conclusion("D", "label smoothing improves BLEU", (("base", "D3"),), "BLEU"),
)  # fmt: skip


def values_of(runs: Iterable[Mapping[str, Any]], metric: Metric) -> dict[str, dict[int, float]]:
    """Arrange a metric of recorded runs by row, in the order of the table, and by seed."""
    found: dict[str, dict[int, float]] = {}
    for run in runs:
        found.setdefault(run["row"], {})[run["seed"]] = float(run[metric])
    return {row: found[row] for row in ROWS if row in found}


def printed(metric: Metric, rows: Iterable[str]) -> dict[str, dict[int, float]]:
    """Return the paper's own numbers in the same form, with one seed."""
    name = {"perplexity": "perplexity", "BLEU": "bleu"}[metric]
    return {row: {0: getattr(ROWS[row], name)} for row in rows}


def gains(values: Values, metric: Metric, better: str, worse: str) -> list[float]:
    """Return by how much a row is better than another with each seed that both have."""
    pairs = [(values[better][s], values[worse][s]) for s in values[better] if s in values[worse]]
    if metric == "perplexity":
        return [float(np.log(other / one)) for one, other in pairs]
    return [one - other for one, other in pairs]


def support(values: Values, metric: Metric, conclusion: Conclusion) -> tuple[int, int]:
    """Count the pairs of rows that support a conclusion, and those that contradict it.

    A pair supports it if its :func:`paired_interval` is above zero, and contradicts it if the
    interval is below zero. The level is 1 - 0.05 / (number of pairs): where no row differs from
    another and gains are normally distributed, at most 5% of all studies count any pair, with any
    number of seeds. A pair with a single seed never counts.
    """
    level = 1 - 0.05 / len(conclusion.pairs)
    intervals = [paired_interval(gains(values, metric, *pair), level) for pair in conclusion.pairs]
    return sum(low > 0 for low, _ in intervals), sum(high < 0 for _, high in intervals)


def verdict(values: Values, metric: Metric, conclusion: Conclusion) -> Verdict:
    """Decide whether a conclusion holds for our rows: "undecided" if no pair of them counts."""
    supporting, contradicting = support(values, metric, conclusion)
    if supporting == len(conclusion.pairs):
        return "holds"
    if supporting:
        return "holds in part"
    return "does not hold" if contradicting else "undecided"
