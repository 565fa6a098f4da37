"""A query among the directions of a compass, to turn while the weights change."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from transformer_book.palette import COLOURS, INK, ROLES, RULE
from transformer_book.widgets.base import Explorer

STEP = 5  # degrees, of the slider
LONGEST = 5.0  # length of a query


class CompassExplorer(Explorer):
    """A query to drag over a compass of keys, with its scores, weights and mean of values."""

    kind = "compass-explorer"
    size = (6.4, 3.2)

    def __init__(
        self,
        values: Mapping[str, Sequence[int | float]],
        columns: Sequence[tuple[str, int]],  # unit and decimals of each component
        direction: int = 45,  # degrees, clockwise from the top
        length: int | float = 4.0,
    ):
        if not 2 <= len(values) <= 8:
            raise ValueError(f"values must have 2 to 8 keys, got {len(values)}")
        if any(len(value) != len(columns) for value in values.values()):
            raise ValueError(f"each value must have {len(columns)} components, one per column")
        if direction not in range(0, 360, STEP):
            raise ValueError(f"direction must be a multiple of {STEP} in 0..355, got {direction}")
        if not 0 <= length <= LONGEST:
            raise ValueError(f"length must be from 0 to {LONGEST:g}, got {length}")
        self.names, self.columns = list(values), list(columns)
        self.values = np.array(list(values.values()), dtype=float)
        self.keys = self.arrow(360 / len(values) * np.arange(len(values)), 1.0)
        self.direction, self.length = direction, length
        self.alt = self._describe()

    @staticmethod
    def arrow(degrees: Any, length: int | float) -> np.ndarray:
        """Return directions as vectors, (..., 2), with the components right and up."""
        angle = np.radians(degrees)
        return length * np.stack([np.sin(angle), np.cos(angle)], axis=-1)

    def scores(self, direction: int, length: int | float) -> np.ndarray:
        """Compute the score of each key, q·k / sqrt(2), (keys)."""
        scores: np.ndarray = self.keys @ self.arrow(direction, length) / math.sqrt(2)
        return scores

    def weights(self, direction: int, length: int | float) -> np.ndarray:
        """Compute the softmax of the scores, (keys)."""
        powers = np.exp(self.scores(direction, length))
        return powers / powers.sum()

    def output(self, direction: int, length: int | float) -> np.ndarray:
        """Compute the weighted mean of the values, (columns)."""
        return self.weights(direction, length) @ self.values

    def _mean(self) -> str:
        output = self.output(self.direction, self.length)
        pairs = zip(output, self.columns, strict=True)
        return ", ".join(
            f"{number:.{digits}f}{'' if unit.startswith('%') else ' '}{unit}"
            for number, (unit, digits) in pairs
        )

    def _describe(self) -> str:
        weights = self.weights(self.direction, self.length)
        shares = [f"{name} {w:.2f}" for name, w in zip(self.names, weights, strict=True)]
        return (
            f"A compass with a query at {self.direction} degrees, of length {self.length:g}, and a "
            f"key in each direction. Weights: {', '.join(shares)}. Weighted mean of the values: "
            f"{self._mean()}."
        )

    def payload(self) -> dict[str, Any]:
        """Collect the names, the values and the initial setting."""
        return {
            "title": "A query among the keys of a compass",
            "names": self.names,
            "values": self.values.tolist(),
            "columns": self.columns,
            "direction": self.direction,
            "length": self.length,
            "step": STEP,
            "longest": LONGEST,
        }

    def draw(self, figure: Figure) -> None:
        """Draw the compass and, beside it, the weights."""
        left, right = figure.subplots(1, 2, width_ratios=[1, 1.1])
        reach = LONGEST + 0.4
        left.add_patch(Circle((0, 0), LONGEST, fill=False, ec=RULE))
        for name, key in zip(self.names, self.keys, strict=True):
            _point(left, key, ROLES["key"], 3)
            left.text(*(key * reach * 1.2), name, ha="center", va="center", color=INK)
        _point(left, self.arrow(self.direction, self.length), ROLES["query"], 4)
        left.set(xlim=(-1.4 * reach, 1.4 * reach), ylim=(-1.3 * reach, 1.3 * reach), aspect="equal")
        left.set_axis_off()
        place = np.arange(len(self.names))
        weights = self.weights(self.direction, self.length)
        right.barh(place, weights, 0.6, color=COLOURS["purple"])
        for row, weight in enumerate(weights):
            right.text(weight + 0.02, row, f"{weight:.2f}", va="center", color=INK)
        right.set_yticks(place, self.names)
        right.set(xlim=(0, 1.1), xlabel="weight", ylim=(len(place) - 0.4, -0.6))
        right.set_title(f"output: {self._mean()}")


def _point(axes: Any, vector: np.ndarray, colour: str, width: int) -> None:
    axes.annotate(
        "", vector, (0, 0), arrowprops=dict(arrowstyle="-|>", color=colour, lw=width, shrinkA=0)
    )
