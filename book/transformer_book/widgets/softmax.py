"""The softmax to explore: how large scores make hard choices, and the effect of the division."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from transformer_book.palette import COLOURS
from transformer_book.widgets.base import Explorer


class SoftmaxExplorer(Explorer):
    """Scores and weights of real vectors, with sliders for their length and the temperature."""

    kind = "softmax-explorer"
    parts = ("facts.css",)
    size = (6.4, 5.6)

    def __init__(
        self,
        queries: Float[Tensor, "Q d_k"],
        keys: Float[Tensor, "S d_k_too"],
        labels: Sequence[str] | None = None,
        query: int | None = None,  # that is shown first; None for one with a usual slope
        d_k: int = 64,
        divide: bool = False,
    ):
        if queries.size(1) != keys.size(1):
            raise ValueError(
                f"queries and keys must be of one length, got {queries.size(1)} and {keys.size(1)}"
            )
        longest = keys.size(1)
        if longest < 2 or longest & (longest - 1):
            raise ValueError(f"the length of the vectors must be a power of two, got {longest}")
        if not 2 <= len(keys) <= 12:
            raise ValueError(f"keys must be 2 to 12 vectors, got {len(keys)}")
        self.sizes = [2**i for i in range(longest.bit_length())]
        if d_k not in self.sizes:
            raise ValueError(f"d_k must be one of {self.sizes}, got {d_k}")
        if query is not None and not 0 <= query < len(queries):
            raise ValueError(f"query must be in 0..{len(queries) - 1}, got {query}")
        default = [f"key {i + 1}" for i in range(len(keys))]
        self.labels = default if labels is None else list(labels)
        if len(self.labels) != len(keys):
            raise ValueError(
                f"labels must be {len(keys)}, one for each key, got {len(self.labels)}"
            )
        self.first, self.divide = self.sizes.index(d_k), divide
        # dot products, (Q, sizes, S), undivided, for each length
        self.scores = torch.stack(
            [queries[:, :d].double() @ keys[:, :d].double().T for d in self.sizes], dim=1
        )
        slopes = self.slope(self.scores[:, self.first].softmax(dim=-1))
        typical = int((slopes - slopes.quantile(0.5)).abs().argmin())
        self.query = typical if query is None else query
        self.alt = self._describe()

    def weights(self, query: int, d_k: int, divide: bool, temperature: float = 1.0) -> Tensor:
        """Compute the weights (S,) for one setting of the controls."""
        scores = self.scores[query, self.sizes.index(d_k)] / temperature
        return (scores / d_k**0.5 if divide else scores).softmax(dim=-1)

    @staticmethod
    def slope(weights: Float[Tensor, "*batch S"]) -> Float[Tensor, "*batch"]:
        """Compute the Frobenius norm of the Jacobian of a softmax, at most 0.5."""
        jacobian = torch.diag_embed(weights) - weights[..., :, None] * weights[..., None, :]
        return jacobian.norm(dim=(-2, -1))

    def _medians(self, divide: bool) -> np.ndarray:
        """Compute the median slope over the queries for each length."""
        sizes = torch.tensor(self.sizes).double()[:, None]
        weights = (self.scores / sizes.sqrt() if divide else self.scores).softmax(dim=-1)
        return np.median(self.slope(weights).numpy(), axis=0)

    def _describe(self) -> str:
        short, long = self.sizes[0], self.sizes[-1]
        parts = []
        for name, divide in (("undivided", False), ("divided by the root of d_k", True)):
            slopes = self._medians(divide)[[0, -1]]
            parts.append(f"{name}, from {slopes[0]:.2f} to {slopes[1]:.2f}")
        return (
            f"Scores of a query against {len(self.labels)} keys, the weights that the softmax "
            f"makes of them, and its slope, which says how much gradient it lets through. As d_k "
            f"grows from {short} to {long}, the median slope of {len(self.scores)} queries goes, "
            f"{' and, '.join(parts)}."
        )

    def payload(self) -> dict[str, Any]:
        """Collect labels, scores and the first setting."""
        return {
            "title": "What a softmax makes of scores",
            "keys": self.labels,
            "sizes": self.sizes,
            "scores": [[[round(s, 4) for s in row] for row in q] for q in self.scores.tolist()],
            "farthest": round(self.scores.abs().max().item(), 3),
            "query": self.query,
            "size": self.first,
            "divide": self.divide,
        }

    def draw(self, figure: Figure) -> None:
        """Draw scores and weights of the query, and below them the slopes, divided and not."""
        axes = figure.subplot_mosaic([["scores", "weights"], ["slope", "slope"]])
        place, size = np.arange(len(self.labels)), self.sizes[self.first]
        sizes = torch.tensor(self.sizes).double()[:, None]
        own = self.scores[self.query]
        for divide, colour in ((False, "vermilion"), (True, "blue")):
            name, paint = "divided" if divide else "undivided", COLOURS[colour]
            scores = own / sizes.sqrt() if divide else own
            weights = self.weights(self.query, size, divide).numpy()
            shift = 0.2 if divide else -0.2
            axes["scores"].barh(place + shift, scores[self.first].numpy(), 0.38, color=paint)
            axes["weights"].barh(place + shift, weights, 0.38, color=paint, label=name)
            slopes = self.slope(scores.softmax(dim=-1)).numpy()
            axes["slope"].plot(
                self.sizes, self._medians(divide), color=paint, lw=2.5, label=f"median, {name}"
            )
            axes["slope"].plot(self.sizes, slopes, "--", color=paint, lw=1, label="this query")
        for name in ("scores", "weights"):
            axes[name].set_yticks(place, self.labels if name == "scores" else [])
            axes[name].set(ylim=(len(place) - 0.4, -0.6))
            axes[name].set_title(f"{name.capitalize()} of a query, $d_k$ = {size}")
        axes["weights"].set(xlim=(0, 1))
        axes["weights"].legend()
        axes["slope"].set(xscale="log", ylim=(0, 0.5), xlabel="$d_k$", ylabel="slope")
        axes["slope"].set_xticks(self.sizes, [str(each) for each in self.sizes])
        axes["slope"].minorticks_off()
        axes["slope"].set_title("Slope of the softmax")
        axes["slope"].legend(fontsize="small")
