"""Sinusoidal positions: each pair of columns is a clock hand."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from transformer.model.positional import sinusoidal_table
from transformer_book.palette import INK, PALE, ROLES, RULE
from transformer_book.widgets.base import Explorer

FACES = 8


class PositionExplorer(Explorer):
    """Two positions as clock hands, and the dot product of their rows for every offset."""

    kind = "position-explorer"
    size = (6.4, 3.8)

    def __init__(
        self,
        position: int = 40,
        offset: int = 3,
        width: int = 64,
        widths: tuple[int, ...] = (16, 64, 512),
        reach: int = 30,
        last: int = 200,
    ):
        if any(columns < 2 * FACES or columns % 2 for columns in widths):
            raise ValueError(f"widths must be even numbers from {2 * FACES} on, got {widths}")
        if width not in widths:
            raise ValueError(f"width must be one of {widths}, got {width}")
        if reach < 1:
            raise ValueError(f"reach must be at least 1, got {reach}")
        if not reach <= position <= last:
            raise ValueError(f"position must be in {reach}..{last}, got {position}")
        if abs(offset) > reach:
            raise ValueError(f"offset must be in -{reach}..{reach}, got {offset}")
        self.position, self.offset, self.width = position, offset, width
        self.widths, self.reach, self.last = widths, reach, last
        self.table = sinusoidal_table(last + reach + 1, width).double().numpy()
        self.alt = self._describe()

    def _products(self, position: int) -> np.ndarray:
        """Compute dot products with all positions in reach, as shares of the largest."""
        near = self.table[position - self.reach : position + self.reach + 1]
        return near @ self.table[position] / (self.width / 2)

    def _describe(self) -> str:
        products = self._products(self.position)
        near, far = products[self.reach + 1], products[-1]
        return (
            f"Clock faces, one for each of {FACES} pairs of columns, with a hand for position "
            f"{self.position} and a hand for position {self.position + self.offset}. The first "
            f"goes round in 6.3 positions, the others ever more slowly. Below, the dot product of "
            f"the two rows against the offset: highest at 0, {near:.2f} of that one place away on "
            f"either side, {far:.2f} of it {self.reach} away, and the same from every position."
        )

    def payload(self) -> dict[str, Any]:
        """Collect ranges and the first setting."""
        return {
            "title": "Two positions, a clock for each pair of columns",
            "position": self.position,
            "offset": self.offset,
            "width": self.width,
            "widths": list(self.widths),
            "reach": self.reach,
            "last": self.last,
            "faces": FACES,
        }

    def draw(self, figure: Figure) -> None:
        """Draw the hands of both positions, and the dot product against the offset."""
        grid = figure.add_gridspec(2, FACES, height_ratios=[1, 2.2])
        pairs = np.linspace(0, self.width // 2 - 1, FACES).round().astype(int)
        for place, pair in enumerate(pairs):
            axes = figure.add_subplot(grid[0, place])
            axes.add_patch(Circle((0, 0), 1, fc=PALE, ec=RULE))
            for row, role, width in (
                (self.position, "query", 3.5),
                (self.position + self.offset, "key", 1.8),
            ):
                x, y = self.table[row, 2 * pair : 2 * pair + 2]
                axes.plot([0, 0.85 * x], [0, 0.85 * y], color=ROLES[role], lw=width)
            turn = np.degrees(abs(self.offset) * 10_000 ** (-2 * pair / self.width))
            axes.text(
                0,
                -1.45,
                f"{turn:.{2 * (0 < turn < 1)}f}°",
                ha="center",
                va="center",
                fontsize="small",
            )
            axes.set(xlim=(-1.1, 1.1), ylim=(-1.7, 1.1), aspect="equal")
            axes.set_axis_off()
            axes.set_title(
                f"pair {pair}", fontsize="small", fontweight="normal", loc="center", pad=2
            )
        axes = figure.add_subplot(grid[1, :])
        steps = np.arange(-self.reach, self.reach + 1)
        products = self._products(self.position)
        axes.plot(steps, products, color=ROLES["key"])
        axes.plot(self.offset, products[self.reach + self.offset], "o", color=INK)
        axes.set(xlabel="offset $k$", ylabel="dot product (share)")
