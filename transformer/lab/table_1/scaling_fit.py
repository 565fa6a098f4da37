"""How a cost grows with a size: the exponent of a power law, how sure it is, and where two meet.

Paper: section 4, Table 1
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Exponent:
    """The power of a size with which a cost grows.

    Args:
        value: the exponent.
        low: lower end of an interval that holds 95 % of the resampled exponents.
        high: upper end.

    Paper: section 4, Table 1
    """

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


def fit_exponent(
    sizes: Sequence[int | float] | np.ndarray,
    costs: Sequence[object] | np.ndarray,
    resamples: int = 1000,
    seed: int = 0,
) -> Exponent:
    """Fit cost = constant * size^exponent by a straight line through the logarithms.

    For the interval, the repeats are drawn anew at each size, with replacement, and so are the
    sizes: the first tells how much the noise of the measurement matters, the second how much the
    choice of the sizes does. A curve that is no power law gets a wide interval by the second.

    Args:
        sizes: at least three different ones, above 0.
        costs: above 0; one for each size, or (repeats, sizes), of which the median is taken.
        resamples: how often to draw.
        seed: of the draws.

    Raises:
        ValueError: if there are too few sizes, the shapes do not fit, or a number is not above 0.
    """
    sizes = np.asarray(sizes, dtype=float)
    costs = np.atleast_2d(np.asarray(costs, dtype=float))
    if len(np.unique(sizes)) < 3:
        raise ValueError(f"at least three sizes are needed, got {sorted(set(sizes.tolist()))}")
    if costs.ndim != 2 or costs.shape[1] != len(sizes):
        raise ValueError(f"costs must have {len(sizes)} columns, got the shape {costs.shape}")
    if not (sizes > 0).all() or not (costs > 0).all():
        raise ValueError("sizes and costs must be above 0")
    logs, values = np.log(sizes), np.log(np.median(costs, axis=0))
    generator = np.random.default_rng(seed)
    drawn: list[float] = []
    repeats, places = costs.shape
    columns = np.arange(places)
    while len(drawn) < resamples:
        chosen = generator.integers(places, size=places)
        if len(set(sizes[chosen])) < 3:
            continue  # a line through one or two sizes says nothing
        rows = generator.integers(repeats, size=costs.shape)
        again = np.log(np.median(costs[rows, columns], axis=0))
        drawn.append(_slope(logs[chosen], again[chosen]))
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Exponent(_slope(logs, values), float(low), float(high))


def local_exponents(
    sizes: Sequence[int | float] | np.ndarray, costs: Sequence[int | float] | np.ndarray
) -> np.ndarray:
    """Return the exponent between each size and the next: a power law gives the same everywhere.

    Args:
        sizes: growing, above 0, of shape (n,).
        costs: one for each size, above 0.

    Returns:
        The exponents, of shape (n - 1,).
    """
    return np.diff(np.log(np.asarray(costs, float))) / np.diff(np.log(np.asarray(sizes, float)))


#: Terms n^p d^q that a layer's count may be made of, as (p, q).
TERMS = ((1, 1), (1, 2), (2, 1), (2, 2))


def fit_terms(
    lengths: Sequence[int] | np.ndarray,
    sizes: Sequence[int] | np.ndarray,
    counts: Sequence[int | float] | np.ndarray,
) -> dict[tuple[int, int], float]:
    """Solve for the coefficients of n d, n d^2, n^2 d and n^2 d^2 that give the counts.

    For counts that are such a sum, the coefficients come out whole, however large n and d are: it
    is the formula of the layer, found without knowing the layer.

    Args:
        lengths: n of each count; with ``sizes``, at least four different pairs.
        sizes: d of each count.
        counts: what was counted.

    Returns:
        The coefficient of each term (p, q); rounding leaves an error of about 1e-9.

    Raises:
        ValueError: if the pairs do not determine the coefficients.

    Paper: section 4, Table 1 (complexity per layer)
    """
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
    """Find the size from which on the first costs more than the second, to the end of the range.

    Args:
        sizes: growing, above 0, of shape (n,).
        first: its cost at each size, above 0.
        second: likewise.

    Returns:
        The size, interpolated between logarithms. 0 if the first costs more at every size, None if
        it does not at the largest.

    Paper: section 4 (n smaller than d)
    """
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


def _slope(x: np.ndarray, y: np.ndarray) -> float:
    """Slope of the line of least squares."""
    x = x - x.mean()
    return float(x @ y / (x @ x))
