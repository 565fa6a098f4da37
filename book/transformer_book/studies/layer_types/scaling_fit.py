"""The growth of a cost with a size."""

from collections.abc import Sequence

import numpy as np


def local_exponents(
    sizes: Sequence[int | float] | np.ndarray, costs: Sequence[int | float] | np.ndarray
) -> np.ndarray:
    """Return the exponent between each size and the next; for a power law they are all equal."""
    return np.diff(np.log(np.asarray(costs, float))) / np.diff(np.log(np.asarray(sizes, float)))
