"""One hidden unit of a feed-forward layer that folds a plane."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from transformer_book.palette import COLOURS, INK, RULE
from transformer_book.widgets.base import Explorer


class FoldExplorer(Explorer):
    """Points of two kinds, and a hidden unit that moves those on one side of a line towards it."""

    kind = "fold-explorer"
    size = (6.4, 3.2)

    def __init__(
        self,
        points: Float[np.ndarray, "n 2"],
        kinds: Sequence[int],
        labels: Sequence[str],
        angle: int = 0,  # in which the unit's value grows, in degrees
        shift: int | float = 0.5,  # of the line, from the origin
        strength: int | float = 2.0,
    ):
        if not len(points) == len(kinds) == len(labels):
            raise ValueError(
                f"points, kinds and labels must have the same length, got {len(points)}, "
                f"{len(kinds)} and {len(labels)}"
            )
        self.points, self.kinds = np.asarray(points, dtype=float), np.array(kinds)
        self.labels, self.first = list(labels), (angle, shift, strength)
        said = " and ".join(
            ", ".join(label for label, of in zip(labels, kinds, strict=True) if of == kind)
            for kind in (0, 1)
        )
        self.alt = (
            f"A plane before and after one hidden unit has moved one side of it. Its points are of "
            f"two kinds: {said}. Before, the widest gap that a straight line leaves between the "
            f"kinds is {max(self.gap(self.points), 0):.2f}; after the unit that is shown first, "
            f"{max(self.gap(self.moved(*self.first)), 0):.2f}. Folded along the diagonal, it is "
            f"{self.gap(self.moved(-45, 0, 2)):.2f}."
        )

    def moved(
        self, angle: int | float, shift: int | float, strength: int | float
    ) -> Float[np.ndarray, "n 2"]:
        """Return x + max(0, x w_1 + b_1) w_2 of every point x, with w_2 = -strength w_1."""
        direction = np.array([np.cos(np.deg2rad(angle)), np.sin(np.deg2rad(angle))])
        unit = np.maximum(0, self.points @ direction - shift)
        return self.points - strength * unit[:, None] * direction

    def gap(self, points: Float[np.ndarray, "n 2"]) -> float:
        """Return the widest gap between the kinds in any direction: above 0 if a line fits in."""
        turns = np.deg2rad(np.arange(360))
        along = points @ np.stack([np.cos(turns), np.sin(turns)])
        between = along[self.kinds == 1].min(axis=0) - along[self.kinds == 0].max(axis=0)
        return float(between.max())

    def payload(self) -> dict[str, Any]:
        """Collect points, labels and the first setting."""
        return {
            "title": "One hidden unit moves half of the plane",
            "points": self.points.tolist(),
            "kinds": self.kinds.tolist(),
            "labels": self.labels,
            "first": list(self.first),
        }

    def draw(self, figure: Figure) -> None:
        """Draw the points before and after the fold along the diagonal."""
        for axes, points, title in zip(
            figure.subplots(1, 2),
            (self.points, self.moved(-45, 0, 2)),
            ("Before", "Folded along the diagonal"),
            strict=True,
        ):
            axes.plot([-0.4, 1.4], [-0.4, 1.4], color=RULE)
            for kind, colour, marker in ((0, INK, "s"), (1, COLOURS["brown"], "o")):
                axes.plot(*points[self.kinds == kind].T, marker, color=colour, ms=11)
            axes.set(xlim=(-0.5, 1.5), ylim=(-0.5, 1.5), aspect="equal")
            axes.set_title(title)
