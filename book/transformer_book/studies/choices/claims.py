"""The values of Table 3, the paper's and ours, and by how much one row is better than another."""

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import numpy as np

from transformer_book.studies.choices.study import ROWS

Metric = Literal["perplexity", "BLEU"]
# Value of a metric by row and seed.
Values = Mapping[str, Mapping[int, float]]


def values_of(runs: Iterable[Mapping[str, Any]], metric: Metric) -> dict[str, dict[int, float]]:
    """Arrange a metric of recorded runs by row, in the order of the table, and by seed."""
    found: dict[str, dict[int, float]] = {}
    for run in runs:
        found.setdefault(run["row"], {})[run["seed"]] = float(run[metric])
    return {row: found[row] for row in ROWS if row in found}


def gains(values: Values, metric: Metric, better: str, worse: str = "base") -> list[float]:
    """Return by how much a row is better than another with each seed that both have.

    In points of BLEU, or in nats: the logarithm of the other row's perplexity over this one's.
    """
    pairs = [(values[better][s], values[worse][s]) for s in values[better] if s in values[worse]]
    if metric == "perplexity":
        return [float(np.log(other / one)) for one, other in pairs]
    return [one - other for one, other in pairs]
