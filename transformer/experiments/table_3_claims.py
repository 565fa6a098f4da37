"""What the paper concludes from Table 3, put to runs of our own.

A conclusion is a list of pairs of rows, the better one first. It is asked of every seed by itself,
so that the answer can be "cannot tell". Beside that, the rank correlation between the paper's rows
and ours says, without any choice of pairs, how far the two tables order models alike.

Paper: section 6.2, Table 3; section 5.4 (label smoothing)
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from math import factorial
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from transformer.experiments.table_3 import ROWS

Metric = Literal["perplexity", "BLEU"]
Verdict = Literal["holds", "holds in part", "cannot tell", "does not hold"]

#: Value of a metric by row and seed.
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
#: that learned positions are nearly identical, orders nothing: see :func:`distance`.
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
        runs: entries of a record of :mod:`transformer.experiments.table_3`.
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


def verdict(values: Values, metric: Metric, conclusion: Conclusion) -> Verdict:
    """Say whether a conclusion of the paper holds for our rows, by one metric.

    Every pair of rows is compared in every seed. A pair is for the conclusion if all seeds agree
    with it, against it if all disagree, and open otherwise.

    Returns:
        "holds" if all pairs are for it; "does not hold" if all are against it; "holds in part" if
        some are for it; "cannot tell" for the rest. One seed has no spread: what it says is taken
        as it is.

    Raises:
        KeyError: if a row is missing.
        ValueError: if two rows have no seed in common.

    Paper: section 6.2
    """
    for_it = against = 0
    for better, worse in conclusion.pairs:
        found = gains(values, metric, better, worse)
        if not found:
            raise ValueError(f"rows {better} and {worse} have no seed in common")
        for_it += all(gain > 0 for gain in found)
        against += all(gain < 0 for gain in found)
    if for_it == len(conclusion.pairs):
        return "holds"
    if against == len(conclusion.pairs):
        return "does not hold"
    return "holds in part" if for_it else "cannot tell"


def distance(values: Values, metric: Metric, one: str, other: str) -> tuple[float, float]:
    """How far two rows lie apart, beside how far seeds of the same row do.

    Args:
        values: of :func:`values_of`.
        metric: differences of perplexity are taken in its logarithm.
        one: a row.
        other: another one.

    Returns:
        The difference of their means, without its sign; and the typical difference between two
        seeds of one row: the root of the mean square over all rows with two seeds or more, nan if
        there is none.

    Raises:
        KeyError: if a row is missing.

    Paper: section 6.2, rows (E)
    """
    scaled = {
        row: np.array([np.log(v) if metric == "perplexity" else v for v in seeds.values()])
        for row, seeds in values.items()
    }
    spreads = [v.var(ddof=1) for v in scaled.values() if len(v) > 1]
    # The difference of two draws has twice the variance of one.
    noise = float(np.sqrt(2 * np.mean(spreads))) if spreads else float("nan")
    return abs(float(scaled[one].mean() - scaled[other].mean())), noise


def rank_correlation(x: Sequence[int | float], y: Sequence[int | float]) -> float:
    """Spearman's rank correlation: 1 if both order things alike, -1 if in reverse.

    Args:
        x: at least two numbers, not all equal.
        y: as many.

    Raises:
        ValueError: if that is not so.

    Paper: not in the paper
    """
    if len(x) != len(y) or len(x) < 2:
        raise ValueError(f"x and y must be equally long, at least 2, got {len(x)} and {len(y)}")
    ranks = [_ranks(np.asarray(values, dtype=float)) for values in (x, y)]
    a, b = (rank - rank.mean() for rank in ranks)
    scale = np.sqrt((a @ a) * (b @ b))
    if scale == 0:
        raise ValueError("a rank correlation needs numbers that differ")
    return float(a @ b / scale)


def chance(
    x: Sequence[int | float], y: Sequence[int | float], samples: int = 20_000, seed: int = 0
) -> float:
    """How often a random order of ``y`` correlates with ``x`` at least as much.

    Args:
        x: numbers.
        y: as many.
        samples: random orders to draw, if there are more orders than that; else all are tried.
        seed: of the draws.

    Returns:
        The share, in (0, 1]; the order as it is counts as one of the draws.

    Raises:
        ValueError: as in :func:`rank_correlation`.

    Paper: not in the paper
    """
    observed = rank_correlation(x, y) - 1e-12
    a, b = (_ranks(np.asarray(values, dtype=float)) for values in (x, y))
    a, b = a - a.mean(), b - b.mean()
    scale = np.sqrt((a @ a) * (b @ b))
    if factorial(len(y)) <= samples:
        orders = np.array(list(permutations(range(len(y)))))
        return float(np.mean(b[orders] @ a / scale >= observed))
    random = np.random.default_rng(seed)
    shuffled = random.permuted(np.tile(b, (samples, 1)), axis=1)
    return (1 + int(np.sum(shuffled @ a / scale >= observed))) / (1 + samples)


def _ranks(values: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Ranks from 0; equal values share the mean of theirs."""
    below = (values[None, :] < values[:, None]).sum(axis=1)
    equal = (values[None, :] == values[:, None]).sum(axis=1)
    return below + (equal - 1) / 2
