"""A beam search to step through, with the continuations that live on, ended or were dropped.

Paper: section 6.1
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from transformer.book.palette import COLOURS, ROLES, SOFT
from transformer.book.widgets.base import Explorer
from transformer.data.tokenizer import TokenizerLike
from transformer.inference.decoding import length_penalty
from transformer.lab.search.steps import Continuation, RecordedSearch

NAMES = {"gnmt": "GNMT", "fairseq": "fairseq"}


class BeamExplorer(Explorer):
    """Recorded searches, step by step, with the scores under several length penalties.

    Paper: section 6.1
    """

    kind = "beam-explorer"
    size = (6.8, 3.6)

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
        """Draw the whole tree of the first search, a column for each step."""
        search = next(iter(self.searches.values()))
        axes = figure.subplots()
        colours = {"alive": COLOURS["blue"], "ended": COLOURS["green"], "dropped": ROLES["hidden"]}
        for column, step in enumerate(search.steps, 1):
            for row, found in enumerate(step):
                colour = colours[found.fate]
                parent = max(found.parent, 0)
                width = 1.0 if found.fate == "dropped" else 2.0
                axes.plot([column - 1, column], [parent, row], color=colour, lw=width, zorder=1)
        for column, step in enumerate(search.steps, 1):
            for row, found in enumerate(step):
                name = self.tokenizer.tokens([found.tokens[-1]])[0]
                dropped = found.fate == "dropped"
                box = dict(boxstyle="round,pad=0.3", fc="white" if dropped else colours[found.fate])
                box["ec"] = colours[found.fate]
                ink = SOFT if dropped else "white"
                axes.text(column, row, name[:8], ha="center", va="center", size=8, c=ink, bbox=box)
        rows = max(len(step) for step in search.steps)
        axes.set(ylim=(rows - 0.5, -0.7), xlim=(-0.2, len(search.steps) + 0.5), yticks=[])
        axes.set_xticks(np.arange(1, len(search.steps) + 1))
        axes.set_xlabel("step: blue lives on, green has ended, grey was dropped")
        axes.grid(False)
        axes.spines[:].set_visible(False)
