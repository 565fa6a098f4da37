"""Which inputs reach an output after some layers of each kind in Table 1."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool
from matplotlib.figure import Figure

from transformer_book.palette import COLOURS, RULE
from transformer_book.widgets.base import Explorer

#: Layer types, by the names that the explorer shows.
KINDS = (
    "self-attention",
    "recurrence (a hop is a step)",
    "convolution, k = 3",
    "dilated convolution, k = 3",
    "restricted self-attention, r = 5",
)


def reads(kind: str, level: int, length: int) -> Bool[np.ndarray, "n n"]:
    """Return which positions (columns) each position (row) reads in a layer."""
    step = np.arange(length)[:, None] - np.arange(length)  # how far back
    if kind.startswith("self-attention"):
        return np.ones_like(step, dtype=bool)
    if kind.startswith("recurrence"):
        return (step == 0) | ((step == 1) & (level > 0))  # the first step has no state to read
    if kind.startswith("restricted"):
        return np.abs(step) <= 2
    gap = 2**level if kind.startswith("dilated") else 1
    return np.isin(step, (-gap, 0, gap))


def receptive_fields(kind: str, depth: int, position: int, length: int) -> Bool[np.ndarray, "d n"]:
    """Return the units that influence an output: ``depth + 1`` rows, the inputs first."""
    field = np.zeros((depth + 1, length), dtype=bool)
    field[depth, position] = True
    for level in reversed(range(depth)):
        field[level] = reads(kind, level, length)[field[level + 1]].any(axis=0)
    return field


class FieldExplorer(Explorer):
    """Layers and an output to choose, and the inputs that reach it; ``source`` is reported."""

    kind = "field-explorer"
    size = (6.4, 3.4)

    def __init__(self, words: Sequence[str], position: int, source: int, depth: int = 8):
        if len(words) > 16 or not (0 <= position < len(words) and 0 <= source < len(words)):
            raise ValueError(
                f"at most 16 words and positions among them are needed, got {len(words)} words "
                f"and the positions {position} and {source}"
            )
        self.words, self.position = list(words), position
        self.source, self.depth = source, depth
        needed = ", ".join(f"{name}: {self.layers_needed(name)}" for name in KINDS)
        self.alt = (
            f"A grid of units, one column per word and one row per layer. The units that influence "
            f"the output at “{words[position]}” are lit. Layers until “{words[source]}” is among "
            f"them: {needed}."
        )

    def layers_needed(self, kind: str) -> int | None:
        """Return after how many layers the source reaches the output; None if it never does."""
        for depth in range(1, self.depth + 1):
            if receptive_fields(kind, depth, self.position, len(self.words))[0, self.source]:
                return depth
        return None

    def payload(self) -> dict[str, Any]:
        """Collect the words and, for every kind and layer, what each position reads."""
        n = len(self.words)
        return {
            "title": "Which inputs reach an output?",
            "words": self.words,
            "position": self.position,
            "source": self.source,
            "kinds": list(KINDS),
            "reads": [
                [
                    [np.flatnonzero(row).tolist() for row in reads(kind, level, n)]
                    for level in range(self.depth)
                ]
                for kind in KINDS
            ],
        }

    def draw(self, figure: Figure) -> None:
        """Draw the number of layers until the source reaches the output, as bars."""
        axes = figure.subplots()
        needed = [self.layers_needed(kind) or np.nan for kind in KINDS]
        axes.barh(range(len(KINDS)), needed, color=COLOURS["purple"], height=0.6)
        axes.set_yticks(range(len(KINDS)), KINDS)
        axes.set(
            ylim=(len(KINDS) - 0.5, -0.5),
            xlabel=f"layers from “{self.words[self.source]}” to “{self.words[self.position]}”",
        )
        axes.spines["bottom"].set_color(RULE)
