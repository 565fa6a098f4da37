"""Spearman's rank correlation and its interval."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

Numbers = Sequence[float] | Sequence[int] | np.ndarray


def spearman(x: Numbers, y: Numbers) -> float:
    """Correlate the ranks of two lists; equal numbers share their mean rank.

    NaN if all numbers of a list are equal.
    """
    if len(x) != len(y) or len(x) < 2:
        raise ValueError(f"x and y must have one length of at least 2: got {len(x)} and {len(y)}")
    return float(_correlation(np.asarray(x), np.asarray(y)))


def spearman_interval(
    x: Numbers, y: Numbers, samples: int = 2000, level: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Return the bootstrap interval of :func:`spearman`: pairs are drawn with replacement."""
    x, y, random = np.asarray(x), np.asarray(y), np.random.default_rng(seed)
    draws = random.integers(len(x), size=(samples, len(x)))
    low, high = (1 - level) / 2, (1 + level) / 2
    low, high = np.nanquantile(_correlation(x[draws], y[draws]), [low, high])
    return float(low), float(high)


def _correlation(x: np.ndarray, y: np.ndarray) -> Any:
    """Correlate the ranks along the last axis."""
    a, b = (r - r.mean(-1, keepdims=True) for r in (rankdata(v, axis=-1) for v in (x, y)))
    with np.errstate(invalid="ignore"):
        return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
