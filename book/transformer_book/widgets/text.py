"""From text to batches: byte-pair encoding, one merge at a time, and sentences to pack."""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Int
from matplotlib.figure import Figure

from transformer_book.palette import COLOURS, ROLES
from transformer_book.widgets.base import Explorer

Pair = tuple[bytes, bytes]


class MergeStepper(Explorer):
    """Step through merges: the most frequent pairs, and sentences in larger and larger pieces."""

    kind = "merge-stepper"
    parts = ("stepper.js", "stepper.css")
    size = (6.4, 4.2)

    def __init__(
        self,
        words: Mapping[str, int],
        merges: Sequence[Pair],
        texts: Sequence[Sequence[str]],
        counted: int = 30,  # merges shown one by one
        leaps: Sequence[int] = (),  # numbers of merges shown after those
        shown: int = 0,
    ):
        self.merges = list(merges)
        self.stops = [*range(counted + 1), *leaps]
        if shown not in self.stops:
            raise ValueError(f"shown must be a number of merges that is shown, got {shown}")
        self.shown = shown
        self.most_frequent = _most_frequent(words, self.merges, counted + 1)
        self.pieces = self._spell(texts)
        first, last = (sum(map(len, lines)) for lines in (self.pieces[0], self.pieces[-1]))
        self.alt = (
            f"{len(texts)} sentences, cut into pieces by byte-pair encoding, and the most frequent "
            f"pairs of the training text. The sentences have {first} pieces before the first merge "
            f"and {last} after {self.stops[-1]:,} merges."
        )

    def _spell(self, texts: Sequence[Sequence[str]]) -> list[list[list[bytes]]]:
        """Return the pieces of each text after each number of merges that is shown."""
        spelled = [[[bytes([b]) for b in word.encode()] for word in text] for text in texts]
        found, last = [], 0
        for stop in self.stops:
            for left, right in self.merges[last:stop]:
                for text in spelled:
                    text[:] = [_joined(word, left, right) for word in text]
            found.append([[piece for word in text for piece in word] for text in spelled])
            last = stop
        return found

    def payload(self) -> dict[str, Any]:
        """Collect pieces and pairs of every step."""
        return {
            "title": "Join the most frequent pair",
            "stops": self.stops,
            "total": len(self.merges),
            "pieces": [[[_label(p) for p in text] for text in step] for step in self.pieces],
            "pairs": [[[*map(_label, pair), n] for pair, n in top] for top in self.most_frequent],
            "joins": [list(map(_label, self.merges[stop - 1])) for stop in self.stops[1:]],
            "after": [
                [list(map(_label, pair)) for pair in self.merges[stop : stop + 5]]
                for stop in self.stops[len(self.most_frequent) :]
            ],
            "first": self.stops.index(self.shown),
        }

    def draw(self, figure: Figure) -> None:
        """Draw the beginning of the last sentence after 0, 10, 20 ... merges."""
        axes = figure.subplots()
        axes.set_axis_off()
        steps = zip(self.stops, self.pieces, strict=True)
        rows = [step for step in steps if step[0] % 10 == 0 or step[0] == self.stops[-1]]
        axes.set(xlim=(0, 1), ylim=(len(rows), -0.5))
        for row, (stop, texts) in enumerate(rows):
            axes.text(0, row, f"{stop:,}", color=COLOURS["purple"], va="center")
            shown = " | ".join(map(_label, texts[-1][:12]))
            axes.text(0.16, row, shown, va="center", fontsize="small")


class BatchPacker(Explorer):
    """Pack sentences, shown as bars, into batches under a budget of positions."""

    #: Orders of the sentences: the size of the windows that are sorted by length.
    ORDERS = {"random": 1, "sorted in windows of 50": 50, "sorted by length": 10**9}
    kind = "batch-packer"
    size = (6.4, 4.4)

    def __init__(
        self,
        lengths: Sequence[int] | Int[np.ndarray, " n"],
        budget: int = 256,
        budgets: tuple[int, int, int] = (64, 512, 32),  # smallest, largest, step
        order: int = 0,
    ):
        if budgets[0] < max(lengths):
            raise ValueError(
                f"the smallest budget, {budgets[0]}, must hold the longest sentence, {max(lengths)}"
            )
        self.lengths, self.budget, self.budgets = list(map(int, lengths)), budget, budgets
        self.order = order
        waste = [f"{name} {self.padding(width, budget):.0%}" for name, width in self.ORDERS.items()]
        self.alt = (
            f"{len(lengths)} sentences as bars, packed into batches of at most {budget} positions. "
            f"A batch is a rectangle as wide as its longest sentence. Share of padding by order "
            f"of the sentences: {', '.join(waste)}."
        )

    def plan(self, width: int, budget: int) -> list[list[int]]:
        """Return the lengths in each batch; windows of ``width`` sentences are sorted."""
        windows = [self.lengths[i : i + width] for i in range(0, len(self.lengths), width)]
        batches: list[list[int]] = []
        for length in (length for window in windows for length in sorted(window)):
            if not batches or max(*batches[-1], length) * (len(batches[-1]) + 1) > budget:
                batches.append([])
            batches[-1].append(length)
        return batches

    def padding(self, width: int, budget: int) -> float:
        """Return the share of padding among all positions; arguments as for :meth:`plan`."""
        area = sum(len(batch) * max(batch) for batch in self.plan(width, budget))
        return 1 - sum(self.lengths) / area

    def payload(self) -> dict[str, Any]:
        """Collect the lengths and the first setting."""
        return {
            "title": "Pack sentences into batches",
            "lengths": self.lengths,
            "orders": [[name, min(w, len(self.lengths))] for name, w in self.ORDERS.items()],
            "budget": self.budget,
            "budgets": list(self.budgets),
            "order": self.order,
        }

    def draw(self, figure: Figure) -> None:
        """Draw the batches in random order and sorted by length."""
        names = list(self.ORDERS)[:: len(self.ORDERS) - 1]
        for axes, name in zip(figure.subplots(1, 2), names, strict=True):
            width = self.ORDERS[name]
            axes.set_axis_off()
            x = y = tall = 0
            for batch in self.plan(width, self.budget):
                if x and x + max(batch) > 110:
                    x, y, tall = 0, y + tall + 4, 0
                rows = range(y, y + len(batch))
                axes.barh(rows, max(batch), left=x, color=ROLES["hidden"], height=1, align="edge")
                axes.barh(rows, batch, left=x, color=COLOURS["purple"], height=1, align="edge")
                x, tall = x + max(batch) + 4, max(tall, len(batch))
            axes.set(xlim=(0, 112), ylim=(max(y + tall, 1), 0))
            axes.set_title(f"{name}: {self.padding(width, self.budget):.0%} padding")


def _most_frequent(
    words: Mapping[str, int], merges: Sequence[Pair], steps: int, top: int = 5
) -> list[list[tuple[Pair, int]]]:
    """Count all pairs before each of the first merges; return the most frequent ones."""
    spelled = {word: [bytes([byte]) for byte in word.encode()] for word in words}
    found: list[list[tuple[Pair, int]]] = []
    for merge in merges[:steps]:
        count: Counter[Pair] = Counter()
        for word, times in words.items():
            for pair in pairwise(spelled[word]):
                count[pair] += times
        if count[merge] < max(count.values()):
            raise ValueError(f"merge {len(found) + 1}, {merge}, is not the next one")
        ranked = [merge, *(pair for pair, _ in count.most_common(top) if pair != merge)]
        found.append([(pair, count[pair]) for pair in ranked[:top]])
        for word in words:
            spelled[word] = _joined(spelled[word], *merge)
    return found


def _joined(pieces: list[bytes], left: bytes, right: bytes) -> list[bytes]:
    """Join a pair wherever it occurs in a word, from left to right."""
    joined: list[bytes] = []
    for piece in pieces:
        if joined and joined[-1] == left and piece == right:
            joined[-1] = left + right
        else:
            joined.append(piece)
    return joined


def _label(piece: bytes) -> str:
    return piece.decode(errors="replace").replace(" ", "▁")
