"""Statistics of the experiments: paired intervals over seeds, and Spearman's rank correlation."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import stdtrit  # scipy.stats takes a hundred times as long

Numbers = Sequence[float] | Sequence[int] | np.ndarray


def paired_interval(found: Sequence[float], level: float = 0.95) -> tuple[float, float]:
    """Return Student's interval of the mean of paired differences; infinite for a single one."""
    if len(found) < 2:
        return -math.inf, math.inf
    mean = float(np.mean(found))
    error = float(np.std(found, ddof=1)) / math.sqrt(len(found))
    half = float(stdtrit(len(found) - 1, (1 + level) / 2)) * error
    return mean - half, mean + half


def spearman(x: Numbers, y: Numbers) -> float:
    """Correlate the ranks of two lists; equal numbers share a rank. NaN if all are equal."""
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
    from scipy.stats import rankdata

    a, b = (r - r.mean(-1, keepdims=True) for r in (rankdata(v, axis=-1) for v in (x, y)))
    with np.errstate(invalid="ignore"):
        return (a * b).sum(-1) / np.sqrt((a * a).sum(-1) * (b * b).sum(-1))
