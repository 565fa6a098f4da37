"""A beam search to step through, with the continuations that live on, ended or were dropped."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from transformer.data.model_tokenizers import TokenizerLike
from transformer.inference.decoding import length_penalty
from transformer_book.palette import COLOURS, RULE, SOFT
from transformer_book.studies.decoding.steps import Continuation, RecordedSearch
from transformer_book.widgets.base import Explorer

NAMES = {"gnmt": "GNMT", "fairseq": "fairseq"}
_STILL = 8  # steps in the picture, which more would make illegible


class BeamExplorer(Explorer):
    """Recorded searches, step by step, with the scores under several length penalties."""

    kind = "beam-explorer"
    parts = ("stepper.js", "stepper.css")
    size = (6.8, 4.6)

    def __init__(
        self, searches: Mapping[str, RecordedSearch], tokenizer: TokenizerLike, step: int = 0
    ):
        if not searches:
            raise ValueError("searches must hold at least one, got none")
        self.searches, self.tokenizer = dict(searches), tokenizer
        self.penalties = next(iter(self.searches.values())).penalties  # the same in all searches
        self.step = step
        self.alt = self._describe()

    def _text(self, found: Continuation) -> str:
        tokens = found.tokens[:-1] if found.fate == "ended" else found.tokens
        return self.tokenizer.decode(list(tokens)).strip() or "(empty)"

    def _name(self, penalty: tuple[float, str]) -> str:
        alpha, kind = penalty
        return f"{NAMES[kind]}, alpha {alpha:g}" if alpha else "probability alone"

    def _describe(self) -> str:
        source, search = next(iter(self.searches.items()))
        seen = sum(len(step) for step in search.steps)
        ended = sum(found.fate == "ended" for step in search.steps for found in step)
        best: dict[str, list[str]] = {}
        for penalty in self.penalties:
            found = search.trace.best(*penalty)
            assert found is not None  # None for a search that was cut short
            text = self.tokenizer.decode(found.tokens).strip()
            best.setdefault(text, []).append(self._name(penalty))
        winners = "; ".join(f"“{text}” by {', '.join(names)}" for text, names in best.items())
        return (
            f"A beam search with {search.trace.beam_size} beams for “{source}”. In "
            f"{len(search.steps)} steps it looks at {seen} continuations, of which {ended} end. "
            f"The best of them: {winners}."
        )

    def _entry(self, found: Continuation) -> dict[str, Any]:
        entry: dict[str, Any] = {
            "parent": found.parent,
            "token": self.tokenizer.tokens([found.tokens[-1]])[0],
            "log": round(found.log_probability, 4),
            "fate": found.fate,
        }
        if found.fate != "dropped":
            entry["text"] = self._text(found)
        if found.fate == "ended":
            length = len(found.tokens)
            entry["scores"] = [
                round(found.log_probability / length_penalty(length, alpha, kind), 4)
                for alpha, kind in self.penalties
            ]
        return entry

    def payload(self) -> dict[str, Any]:
        """Collect every step of every search."""
        return {
            "title": "A beam search, step by step",
            "step": self.step,
            "penalties": [self._name(penalty) for penalty in self.penalties],
            "searches": [
                {
                    "source": source,
                    "steps": [[self._entry(found) for found in step] for step in search.steps],
                    "settled": [search.trace.settled(*penalty) for penalty in self.penalties],
                }
                for source, search in self.searches.items()
            ],
        }

    def draw(self, figure: Figure) -> None:
        """Draw what lived on or ended in the first steps of the first search, as a tree."""
        search = next(iter(self.searches.values()))
        nodes = _tree(search, _STILL)
        axes = figure.subplots()
        for node in nodes:
            x, y = node.column, node.row
            start, turn = node.parent_column, node.parent_column + 0.4  # right of its number
            axes.plot([start, turn, x - 0.45, x], [node.parent_row, node.parent_row, y, y],
                      color=RULE, lw=1.2, zorder=1)  # fmt: skip
            colour = COLOURS["green" if node.found.fate == "ended" else "blue"]
            if not node.lasts:
                colour = SOFT
            name = self.tokenizer.tokens([node.found.tokens[-1]])[0].strip("\u2581")
            axes.text(x, y, name[:8], ha="center", va="center", size=8, c="white",
                      bbox=dict(boxstyle="round,pad=0.3", fc=colour, ec=colour))  # fmt: skip
            log = f"{node.found.log_probability:.2f}".replace("-", "\u2212")
            axes.text(x, y + 0.42, log, ha="center", va="center", size=7, c=SOFT)
        columns = max(node.column for node in nodes)
        rows = max(node.row for node in nodes)
        axes.set(ylim=(rows + 0.7, -0.5), xlim=(-0.1, columns + 0.6), yticks=[])
        axes.set_xticks(np.arange(1, columns + 1))
        axes.set_xlabel(
            f"steps 1 to {columns} of {len(search.steps)}, with the log-probability of each "
            "beginning; grey: given up later"
        )
        axes.grid(False)
        axes.spines[:].set_visible(False)


@dataclass(frozen=True)
class _Node:
    """A continuation that was kept, and its place in the tree; ``lasts`` if any of it was used."""

    found: Continuation
    column: int
    row: int
    parent_column: int
    parent_row: int
    lasts: bool


def _tree(search: RecordedSearch, steps: int) -> list[_Node]:
    """Place what was kept in the first steps: one row per leaf, so that no two lines cross."""
    kept, nodes = search.steps[:steps], list[_Node]()
    children: dict[tuple[int, int], list[int]] = {}
    for column, step in enumerate(kept):
        for place, found in enumerate(step):
            if found.fate != "dropped":
                children.setdefault((column, found.parent), []).append(place)

    def grow(column: int, place: int, row: int) -> tuple[int, bool]:
        """Place what grew from a continuation; return the next free row, and whether it lasts."""
        free, lasts = row, False
        for child in children.get((column, place), []):
            found, at = kept[column][child], free
            below, used = grow(column + 1, child, at)
            used |= found.fate == "ended" or column + 1 == len(kept)
            nodes.append(_Node(found, column + 1, at, column, row, used))
            free, lasts = max(below, at + 1), lasts or used
        return free, lasts

    grow(0, -1, 0)
    return nodes
