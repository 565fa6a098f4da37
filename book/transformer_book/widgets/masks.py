"""Masks to build, and patterns of sparse attention: which query may attend to which key."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Bool, Int
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from torch import Tensor

from transformer.model.masks import causal_mask, padding_mask
from transformer_book.palette import ROLES
from transformer_book.widgets.base import Explorer


class MaskBuilder(Explorer):
    """A grid of queries and keys, with switches for the future, the padding and a window."""

    kind = "mask-builder"
    parts = ("grid.js", "grid.css")
    size = (5.2, 4.0)

    def __init__(
        self,
        tokens: Sequence[str],
        causal: bool = True,
        padding: int = 0,
        window: int | None = None,  # positions that a query sees back to, itself included
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
        """Compute the mask (T, T) for one setting of the controls; True = may attend."""
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


#: Names of the patterns, in the order of the menu.
PATTERNS = ("window", "window and stride", "window and global token", "blocks", "all positions")


class ReachExplorer(Explorer):
    """A grid of queries and keys with the number of layers that information needs."""

    kind = "reach-explorer"
    parts = ("grid.js", "grid.css")
    size = (5.4, 4.6)

    def __init__(self, tokens: Sequence[str], width: int = 5, layers: int = 2, query: int = 0):
        self.tokens = list(tokens)
        if not 4 <= len(self.tokens) <= 16:
            raise ValueError(f"tokens must be 4 to 16, got {len(self.tokens)}")
        if width % 2 == 0 or not 1 <= width <= 9:
            raise ValueError(f"width must be odd and in 1..9, got {width}")
        if not 1 <= layers <= 4:
            raise ValueError(f"layers must be in 1..4, got {layers}")
        if not 0 <= query < len(self.tokens):
            raise ValueError(f"query must be in 0..{len(self.tokens) - 1}, got {query}")
        self.width, self.layers, self.query = width, layers, query
        said = []
        for name in PATTERNS:
            mask = self.mask(name, width)
            reached = int((self.hops(mask, layers)[query] >= 0).sum())
            said.append(f"{name}: {int(mask.sum())} scores, {reached} positions reached")
        self.alt = (
            f"A grid of {len(self.tokens)} queries and keys, with the number of layers that "
            f"information needs from key to query. With a neighbourhood of {width} and {layers} "
            f"layers, for the query {self.tokens[query]}: {'; '.join(said)}."
        )

    def mask(self, pattern: str, width: int, causal: bool = False) -> Bool[Tensor, "T T"]:
        """Make the mask of one of :data:`PATTERNS`, (T, T); ``width`` is the stride too."""
        place = torch.arange(len(self.tokens))
        distance = place[:, None] - place
        near = distance.abs() <= width // 2
        mask = {
            "window": near,
            "window and stride": near | (distance % width == 0),
            "window and global token": near | (place == 0) | (place == 0)[:, None],
            "blocks": place[:, None] // width == place // width,
            "all positions": torch.ones_like(near),
        }[pattern]
        return mask & (distance >= 0) if causal else mask

    def hops(self, mask: Bool[Tensor, "T T"], layers: int) -> Int[Tensor, "T T"]:
        """Return the number of layers from key to query: 0 to itself, -1 if there are too few."""
        reached = torch.eye(len(mask), dtype=torch.bool)
        found = torch.where(reached, 0, -1)
        for layer in range(1, layers + 1):
            reached = reached | (mask.float() @ reached.float() > 0)
            found = torch.where(reached & (found < 0), layer, found)
        return found

    def payload(self) -> dict[str, Any]:
        """Collect the tokens and the first setting."""
        return {
            "title": "What can reach what",
            "tokens": self.tokens,
            "patterns": PATTERNS,
            "width": self.width,
            "layers": self.layers,
            "query": self.query,
        }

    def draw(self, figure: Figure) -> None:
        """Draw the grid of the window."""
        hops = self.hops(self.mask("window", self.width), self.layers)
        axes = figure.subplots()
        axes.grid(False)
        near, far = ROLES["key"], "#7fb8d8"
        shades = ListedColormap([ROLES["hidden"], near, near, far, "#bcd9ea", "#dcebf4"])
        axes.pcolormesh(hops.numpy(), cmap=shades, vmin=-1, vmax=4, ec="white", lw=2)
        places = torch.arange(len(self.tokens)).numpy() + 0.5
        axes.set_xticks(places, self.tokens, rotation=60, ha="left")
        axes.set_yticks(places, self.tokens)
        axes.tick_params(top=True, labeltop=True, bottom=False, labelbottom=False, length=0)
        axes.spines[:].set_visible(False)
        axes.set(ylim=(len(self.tokens), 0), aspect="equal")
        axes.set_xlabel("blue: one layer, light blue: more, grey: not reached")
