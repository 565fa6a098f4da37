"""The growth of a cost with a size: local exponents, whole formulas, and crossovers."""

from collections.abc import Sequence

import numpy as np


def local_exponents(
    sizes: Sequence[int | float] | np.ndarray, costs: Sequence[int | float] | np.ndarray
) -> np.ndarray:
    """Return the exponent between each size and the next; for a power law they are all equal."""
    return np.diff(np.log(np.asarray(costs, float))) / np.diff(np.log(np.asarray(sizes, float)))


#: Possible terms n^p d^q of a layer's count, as (p, q).
TERMS = ((1, 1), (1, 2), (2, 1), (2, 2))


def fit_terms(
    lengths: Sequence[int] | np.ndarray,
    sizes: Sequence[int] | np.ndarray,
    counts: Sequence[int | float] | np.ndarray,
) -> dict[tuple[int, int], float]:
    """Solve for the coefficients of n d, n d^2, n^2 d and n^2 d^2 that give the counts."""
    n, d = np.asarray(lengths, float), np.asarray(sizes, float)
    terms = np.stack([n**p * d**q for p, q in TERMS], axis=1)
    scale = terms.max(axis=0)  # the terms differ by orders of magnitude
    found, _, rank, _ = np.linalg.lstsq(terms / scale, np.asarray(counts, float), rcond=None)
    if rank < len(TERMS):
        raise ValueError(f"{len(n)} pairs of n and d do not determine {len(TERMS)} coefficients")
    return dict(zip(TERMS, (found / scale).tolist(), strict=True))


def crossover(
    sizes: Sequence[int | float] | np.ndarray,
    first: Sequence[int | float] | np.ndarray,
    second: Sequence[int | float] | np.ndarray,
) -> float | None:
    """Find the size above which the first cost is larger: 0 if at every size, None if at none."""
    gap = np.log(np.asarray(first, float)) - np.log(np.asarray(second, float))
    if gap[-1] <= 0:
        return None
    below = np.flatnonzero(gap <= 0)
    if not len(below):
        return 0.0
    last = below[-1]
    share = -gap[last] / (gap[last + 1] - gap[last])
    logs = np.log(np.asarray(sizes, float))
    return float(np.exp(logs[last] + share * (logs[last + 1] - logs[last])))
