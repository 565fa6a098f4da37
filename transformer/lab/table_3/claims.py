"""The paper's conclusions from Table 3, tested on runs of our own.

A conclusion is a list of pairs of rows, the better one first. It is tested with every seed by
itself, so that the answer can be "cannot tell"."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

from transformer.lab.table_3.study import ROWS

Metric = Literal["perplexity", "BLEU"]
Verdict = Literal["holds", "holds in part", "cannot tell", "does not hold"]

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
#: that learned positions are nearly identical, orders nothing; compare :func:`seed_distance`.
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
    """Return by how much a row is better than another with each seed that both have.

    A gain in perplexity is that of its logarithm, in nats per token.
    """
    pairs = [(values[better][s], values[worse][s]) for s in values[better] if s in values[worse]]
    if metric == "perplexity":
        return [float(np.log(other / one)) for one, other in pairs]
    return [one - other for one, other in pairs]


def seed_distance(values: Values, metric: Metric) -> float:
    """Return the median distance between two seeds of one row, over all rows and pairs of seeds.

    The median ignores a row that failed to learn with one seed. NaN if no row has two seeds.
    """
    found = [
        abs(gain)
        for row in values.values()
        for one, other in combinations(row.values(), 2)
        for gain in gains({"": {0: one}, " ": {0: other}}, metric, "", " ")
    ]
    return float(np.median(found)) if found else math.nan


def verdict(values: Values, metric: Metric, conclusion: Conclusion) -> Verdict:
    """Decide whether a conclusion of the paper holds for our rows, by one metric.

    A pair of rows supports the conclusion if all seeds agree with it and the mean gain exceeds
    :func:`seed_distance`; it contradicts the conclusion if the same is true of the opposite. A
    single seed has no spread, so its gains are taken as they are. The verdict is "holds" if all
    pairs support it, "does not hold" if all contradict it, "holds in part" if some support it.

    Paper: section 6.2
    """
    least = seed_distance(values, metric)
    least = 0.0 if math.isnan(least) else least
    supporting = contradicting = 0
    for better, worse in conclusion.pairs:
        found = gains(values, metric, better, worse)
        mean = sum(found) / len(found)
        supporting += min(found) > 0 and mean > least
        contradicting += max(found) < 0 and -mean > least
    if supporting == len(conclusion.pairs):
        return "holds"
    if contradicting == len(conclusion.pairs):
        return "does not hold"
    return "holds in part" if supporting else "cannot tell"
