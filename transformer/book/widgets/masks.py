"""Masks to build: which query may attend to which key, under rules to switch on and off.

Paper: section 3.2.3
"""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from torch import Tensor

from transformer.book.palette import ROLES
from transformer.book.widgets.base import Explorer
from transformer.model.masks import causal_mask, padding_mask


class MaskBuilder(Explorer):
    """A grid of queries and keys, with switches for the future, the padding and a window.

    Args:
        tokens: a sentence of 4 to 10 tokens; padding replaces the last ones.
        causal: whether the future is hidden at first.
        padding: number of padding positions at first.
        window: number of positions that a query sees at first, itself included; None for all.
        query: query that is marked at first, from 0.

    Raises:
        ValueError: if one of them is out of its range.

    Paper: section 3.2.3
    """

    kind = "mask-builder"
    size = (5.2, 4.0)

    def __init__(
        self,
        tokens: Sequence[str],
        causal: bool = True,
        padding: int = 0,
        window: int | None = None,
        query: int = 0,
    ):
        self.tokens = list(tokens)
        length = len(self.tokens)
        if not 4 <= length <= 10:
            raise ValueError(f"tokens must be 4 to 10, got {length}")
        window = length if window is None else window
        if not 1 <= window <= length:
            raise ValueError(f"window must be in 1..{length}, got {window}")
        if not 0 <= padding < length:
            raise ValueError(f"padding must be in 0..{length - 1}, got {padding}")
        if not 0 <= query < length:
            raise ValueError(f"query must be in 0..{length - 1}, got {query}")
        self.causal, self.padding, self.window, self.query = causal, padding, window, query
        self.alt = self._describe()

    def mask(self, causal: bool, padding: int, window: int) -> Bool[Tensor, "T T"]:
        """Compute the mask (T, T) for one setting of the controls; True = may attend.

        Args:
            causal: whether the future is hidden.
            padding: number of padding positions at the end.
            window: number of positions that a query sees back to, itself included, and forward if
                the future is open.

        Paper: section 3.2.3
        """
        length = len(self.tokens)
        ids = torch.ones(1, length, dtype=torch.long)
        ids[0, length - padding :] = 0
        places = torch.arange(length)
        near = (places[:, None] - places).abs() < window
        mask = padding_mask(ids)[0, 0] & near
        return mask & causal_mask(length) if causal else mask

    def _shown(self) -> list[str]:
        real = len(self.tokens) - self.padding
        return self.tokens[:real] + ["<pad>"] * self.padding

    def _describe(self) -> str:
        mask, shown = self.mask(self.causal, self.padding, self.window), self._shown()
        rows = [f"{name} sees {sum(row)}" for name, row in zip(shown, mask.tolist(), strict=True)]
        return f"A grid of {len(shown)} queries and {len(shown)} keys. {', '.join(rows)}."

    def payload(self) -> dict[str, Any]:
        """Collect the tokens and the first setting."""
        return {
            "title": "Which query may attend to which key",
            "tokens": self.tokens,
            "causal": self.causal,
            "padding": self.padding,
            "window": self.window,
            "query": self.query,
        }

    def draw(self, figure: Figure) -> None:
        """Draw the grid."""
        mask, shown = self.mask(self.causal, self.padding, self.window), self._shown()
        axes = figure.subplots()
        axes.grid(False)
        shades = ListedColormap([ROLES["hidden"], ROLES["key"]])
        axes.pcolormesh(mask.numpy(), cmap=shades, vmin=0, vmax=1, ec="white", lw=3)
        places = torch.arange(len(shown)).numpy() + 0.5
        axes.set_xticks(places, shown, rotation=60, ha="left")
        axes.set_yticks(places, shown)
        axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
        axes.spines[:].set_visible(False)
        axes.set(
            ylim=(len(shown), 0), aspect="equal", xlabel="blue: the query of the row may attend"
        )
