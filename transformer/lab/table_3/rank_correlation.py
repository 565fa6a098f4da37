"""Do two lists put things in the same order? Spearman's coefficient, and how sure it is."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

Numbers = Sequence[float] | Sequence[int] | np.ndarray


def ranks(values: Numbers) -> Float[np.ndarray, " n"]:
    """Number the values from the smallest, 1, to the largest, n; equal ones share their mean.

    Args:
        values: n numbers.
    """
    _, group, counts = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[group]


def spearman(x: Numbers, y: Numbers) -> float:
    """Correlate the ranks of two lists.

    Args:
        x: n numbers, at least 2.
        y: as many.

    Returns:
        1 for the same order, -1 for the opposite one, about 0 for unrelated lists; NaN if a list
        holds one and the same number throughout.

    Raises:
        ValueError: if the lists differ in length or have fewer than 2 numbers.
    """
    if len(x) != len(y) or len(x) < 2:
        raise ValueError(f"x and y must be as long, and at least 2: got {len(x)} and {len(y)}")
    a, b = (r - r.mean() for r in (ranks(x), ranks(y)))
    scale = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / scale) if scale else float("nan")


def spearman_interval(
    x: Numbers, y: Numbers, samples: int = 2000, level: float = 0.95, seed: int = 0
) -> tuple[float, float]:
    """Say between which values the coefficient lies, by drawing pairs with replacement.

    Args:
        x: n numbers, at least 2.
        y: as many.
        samples: how many lists of n pairs to draw.
        level: share of the draws that lie inside, above 0 and below 1.
        seed: of the draws.

    Raises:
        ValueError: as :func:`spearman` does, or if ``level`` is out of range.
    """
    if not 0 < level < 1:
        raise ValueError(f"level must be above 0 and below 1, got {level}")
    x, y, random = np.asarray(x), np.asarray(y), np.random.default_rng(seed)
    draws = random.integers(len(x), size=(samples, len(x)))
    found = np.array([spearman(x[draw], y[draw]) for draw in draws])
    low, high = np.nanquantile(found, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def spearman_chance(x: Numbers, y: Numbers, samples: int = 2000, seed: int = 0) -> float:
    """How often a random order correlates as strongly, in either direction: the p-value.

    Args:
        x: n numbers, at least 2.
        y: as many.
        samples: how many orders to draw.
        seed: of the draws.

    Returns:
        A number above 0 and at most 1.

    Raises:
        ValueError: as :func:`spearman` does.
    """
    x, random = np.asarray(x), np.random.default_rng(seed)
    strength = abs(spearman(x, y)) - 1e-12
    found = [abs(spearman(random.permutation(x), y)) for _ in range(samples)]
    return (1 + sum(value >= strength for value in found)) / (samples + 1)
