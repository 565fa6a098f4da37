"""An explorer of untrained stacks: choose residual connection, norm and depth."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from transformer_book.palette import COLOURS
from transformer_book.studies.residuals.study import KINDS, level
from transformer_book.widgets.base import Explorer

PLACES = ("post", "pre", "none")
MEASURES = ("size", "likeness", "gradients")


class DepthExplorer(Explorer):
    """Size, similarity of positions and gradient per layer, for every depth and kind of wrapper."""

    kind = "depth-explorer"
    size = (6.4, 5.2)

    def __init__(
        self,
        found: Mapping[str, Mapping[str, Sequence[Any]]],
        tokens: Sequence[str],
        layers: int = 24,
        kind: str = "post-norm",
    ):
        if missing := [name for name in KINDS if name not in found]:
            raise ValueError(f"found must hold every kind, {missing} are missing")
        self.deepest = len(found[kind]["gradients"])
        if not 1 <= layers <= self.deepest:
            raise ValueError(f"layers must be in 1..{self.deepest}, got {layers}")
        self.tokens, self.layers, self.first = list(tokens), layers, kind
        self.measured = {
            name: dict(
                size=level(found[name]["size"]),
                likeness=np.mean(found[name]["likeness"], axis=0).tolist(),
                recognised=np.mean(found[name]["recognised"], axis=0).tolist(),
                gradients=[list(row) for row in found[name]["gradients"]],
            )
            for name in KINDS
        }
        self.alt = self._describe()

    def _describe(self) -> str:
        parts = []
        for name in ("post-norm", "pre-norm"):
            seen = self.measured[name]
            n = self.layers
            parts.append(
                f"{name}, size {seen['size'][n]:.1f}, similarity of positions "
                f"{seen['likeness'][n]:.2f}, gradient from {seen['gradients'][n - 1][0]:.1f} in "
                f"the first layer to {seen['gradients'][n - 1][-1]:.1f} in the last"
            )
        return (
            f"An untrained stack of up to {self.deepest} layers: the size of its vectors, the "
            f"similarity of positions, and the gradient in each layer. After {self.layers} "
            f"layers: {'; '.join(parts)}."
        )

    def payload(self) -> dict[str, Any]:
        """Collect the measurements and the first setting, with four digits."""
        return {
            "title": "What depth does to a sentence before training",
            "tokens": len(self.tokens),
            "deepest": self.deepest,
            "layers": self.layers,
            "residual": KINDS[self.first].residual,
            "place": PLACES.index(KINDS[self.first].norm),
            "kinds": [
                dict(name=name, residual=KINDS[name].residual, place=PLACES.index(KINDS[name].norm))
                | {part: _short(values) for part, values in seen.items()}
                for name, seen in self.measured.items()
            ],
        }

    def draw(self, figure: Figure) -> None:
        """Draw the three measures for post-norm and pre-norm at the first depth."""
        panels = figure.subplots(3, 1, sharex=True)
        titles = "size of the vectors", "similarity of positions", "gradient"
        looks = ("post-norm", COLOURS["purple"], "o"), ("pre-norm", COLOURS["brown"], "s")
        for axes, part, title in zip(panels, MEASURES, titles, strict=True):
            for name, colour, marker in looks:
                values = self.measured[name][part]
                values = values[self.layers - 1] if part == "gradients" else values
                first = int(part == "gradients")
                shown = values[: self.layers + 1 - first]
                axes.plot(range(first, self.layers + 1), shown, marker=marker, ms=3.5,
                          color=colour, label=name)  # fmt: skip
            axes.set_title(title)
            axes.set_ylim(bottom=0)
        panels[1].legend(loc="lower right")
        panels[-1].set_xlabel(f"layer of {self.layers}")


def _short(values: Any) -> Any:
    if isinstance(values, list):
        return [_short(value) for value in values]
    return float(f"{values:.3g}")
