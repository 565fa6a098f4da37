"""What the paper concludes from Table 3, put to runs of our own.

A conclusion is a list of pairs of rows, the better one first. It is asked of every seed by itself,
so that the answer can be "cannot tell". How far the two tables order all their rows alike, without
any choice of pairs, is a rank correlation: :mod:`transformer.lab.table_3.rank_correlation`.

Paper: section 6.2, Table 3; section 5.4 (label smoothing)
"""

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
    """A sentence of the paper, as comparisons of rows that can come out either way.

    Args:
        rows: which rows it is about, as the table names them.
        text: what the paper concludes, in short.
        pairs: rows (better, worse); all of them for "bigger is better".
        metric: the one that the paper argues with; None for both.

    Paper: section 6.2
    """

    rows: str
    text: str
    pairs: tuple[tuple[str, str], ...]
    metric: Metric | None = None


#: The five observations of section 6.2 that order rows, and the one of section 5.4. The sixth,
#: that learned positions are nearly identical, orders nothing, so it is set beside
#: :func:`seed_distance`.
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
    """Arrange recorded runs by row and seed.

    Args:
        runs: entries of a record of :mod:`transformer.lab.table_3.study`.
        metric: which number of each.

    Returns:
        Row -> seed -> value, rows in the order of the table.

    Paper: Table 3
    """
    found: dict[str, dict[int, float]] = {}
    for run in runs:
        found.setdefault(run["row"], {})[run["seed"]] = float(run[metric])
    return {row: found[row] for row in ROWS if row in found}


def printed(metric: Metric, rows: Iterable[str]) -> dict[str, dict[int, float]]:
    """Give the paper's own numbers the same form, with one seed.

    Args:
        metric: which column.
        rows: which rows.

    Paper: Table 3
    """
    name = {"perplexity": "perplexity", "BLEU": "bleu"}[metric]
    return {row: {0: getattr(ROWS[row], name)} for row in rows}


def gains(values: Values, metric: Metric, better: str, worse: str) -> list[float]:
    """By how much one row is better than another, seed by seed.

    Args:
        values: of :func:`values_of`.
        metric: a perplexity is better when it is lower. Its gain is that of its logarithm, in
            nats a token; a gain in BLEU is in points.
        better: the row that is expected to be better.
        worse: the other one.

    Returns:
        A gain for each seed that both rows have; above 0 where ``better`` is better.

    Raises:
        KeyError: if a row is missing.

    Paper: Table 3
    """
    pairs = [(values[better][s], values[worse][s]) for s in values[better] if s in values[worse]]
    if metric == "perplexity":
        return [float(np.log(other / one)) for one, other in pairs]
    return [one - other for one, other in pairs]


def seed_distance(values: Values, metric: Metric) -> float:
    """How far two seeds of one row lie apart: the median over all rows and pairs of seeds.

    A median, so that one row that failed to learn with one seed does not set the measure.

    Args:
        values: of :func:`values_of`.
        metric: differences of perplexity are taken in its logarithm.

    Returns:
        The distance; nan if no row has two seeds.
    """
    found = [
        abs(gain)
        for row in values.values()
        for one, other in combinations(row.values(), 2)
        for gain in gains({"": {0: one}, " ": {0: other}}, metric, "", " ")
    ]
    return float(np.median(found)) if found else math.nan


def verdict(values: Values, metric: Metric, conclusion: Conclusion) -> Verdict:
    """Say whether a conclusion of the paper holds for our rows, by one metric.

    Every pair of rows is compared in every seed. A pair is for the conclusion if all seeds agree
    with it and the mean gain exceeds the distance of two seeds of one row; against it likewise;
    and open otherwise.

    Returns:
        "holds" if all pairs are for it; "does not hold" if all are against it; "holds in part" if
        some are for it; "cannot tell" for the rest. One seed has no spread, so what it says is
        taken as it is.

    Raises:
        KeyError: if a row is missing.
        ValueError: if two rows have no seed in common.

    Paper: section 6.2
    """
    least = seed_distance(values, metric)
    least = 0.0 if math.isnan(least) else least
    for_it = against = 0
    for better, worse in conclusion.pairs:
        found = gains(values, metric, better, worse)
        if not found:
            raise ValueError(f"rows {better} and {worse} have no seed in common")
        mean = sum(found) / len(found)
        for_it += min(found) > 0 and mean > least
        against += max(found) < 0 and -mean > least
    if for_it == len(conclusion.pairs):
        return "holds"
    if against == len(conclusion.pairs):
        return "does not hold"
    return "holds in part" if for_it else "cannot tell"
