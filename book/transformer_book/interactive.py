"""Attention maps to explore: rows are queries, columns are keys, and a cell is their weight."""

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from torch import Tensor

from transformer_book.palette import ROLES
from transformer_book.widgets.base import Explorer


class AttentionMap(Explorer):
    """One or several attention maps over the same labelled queries and keys."""

    kind = "attention-map"

    def __init__(
        self,
        weights: Tensor | np.ndarray,  # (T, S), or (maps, T, S) to choose from
        queries: Sequence[str],
        keys: Sequence[str],
        names: Sequence[str] | None = None,
        alt: str = "",
        row: int = 0,
    ):
        if isinstance(weights, Tensor):
            weights = weights.detach().cpu().float().numpy()
        self.weights = weights[None] if weights.ndim == 2 else weights
        self.queries, self.keys = list(queries), list(keys)
        self.names = [f"map {i + 1}" for i in range(len(self.weights))]
        if names is not None:
            self.names = list(names)
        self.row = row
        shape = (len(self.names), len(self.queries), len(self.keys))
        if self.weights.shape != shape:
            raise ValueError(
                f"weights must be (maps, queries, keys) = {shape} as the labels say, "
                f"got {self.weights.shape}"
            )
        if not (self.weights.min() >= 0 and self.weights.max() <= 1 + 1e-6):
            raise ValueError(
                f"weights must lie in [0, 1], got {self.weights.min():.4g} to "
                f"{self.weights.max():.4g}: are these scores, from before the softmax?"
            )
        if not 0 <= row < shape[1]:
            raise ValueError(f"row must be in 0..{shape[1] - 1}, got {row}")
        self.size = (max(3.0, 1.6 + 0.5 * shape[2]), max(1.8, 1.2 + 0.36 * shape[1]))
        self.alt = alt or self._describe()

    def _describe(self) -> str:
        pairs = []
        for query, row in zip(self.queries, self.weights[0], strict=True):
            even = row.max() - row.min() < 1e-3
            pairs.append(f"{query} to {'all equally' if even else self.keys[row.argmax()]}")
        return f"Attention map. Largest weight of each query: {', '.join(pairs)}."

    def draw(self, figure: Figure) -> None:
        """Draw the first map."""
        rows, columns = self.weights.shape[1:]
        axes = figure.subplots()
        axes.grid(False)
        axes.imshow(self.weights[0], cmap="Blues", vmin=0, vmax=1, aspect="auto")
        axes.set_xticks(range(columns), self.keys, rotation=45, ha="left")
        axes.set_yticks(range(rows), self.queries)
        axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
        axes.spines[:].set_visible(False)
        axes.set_xlabel("key", color=ROLES["key"])
        axes.set_ylabel("query", color=ROLES["query"])

    def payload(self) -> dict[str, Any]:
        """Pack labels and weights; 16 bits per weight keep four decimals."""
        packed = np.round(np.clip(self.weights, 0, 1) * 65535).astype("<u2").tobytes()
        return {
            "title": "How much each query takes from each key",
            "queries": self.queries,
            "keys": self.keys,
            "names": self.names,
            "row": self.row,
            "weights": base64.b64encode(packed).decode(),
        }
