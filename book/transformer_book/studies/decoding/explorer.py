"""A beam search to step through, with the continuations that live on, ended or were dropped."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Int
from matplotlib.figure import Figure
from torch import Tensor

from transformer.data.model_tokenizers import TokenizerLike
from transformer.inference.decoding import length_penalty
from transformer.inference.options import LengthPenalty
from transformer.model.base import evaluation_mode
from transformer.model.transformer import Transformer
from transformer_book.palette import COLOURS, RULE, SOFT
from transformer_book.widgets.base import Explorer

Penalty = tuple[float, LengthPenalty]
NAMES = {"gnmt": "GNMT", "fairseq": "fairseq"}
_STILL = 8  # steps in the picture, which more would make illegible


Fate = Literal["alive", "ended", "dropped"]


@dataclass(frozen=True)
class Continuation:
    """A prefix of the step before, and one more token."""

    parent: int  #: its place among the continuations of the step before; -1 at the first step.
    tokens: tuple[int, ...]
    log_probability: float
    fate: Fate

    def score(self, alpha: float, kind: LengthPenalty) -> float:
        """Return the score under a length penalty."""
        return self.log_probability / length_penalty(len(self.tokens), alpha, kind)


@dataclass(frozen=True)
class RecordedSearch:
    """A beam search of one sentence: all that it looked at, step by step."""

    steps: list[list[Continuation]]
    #: The step after which nothing can overtake the best finished hypothesis, by penalty.
    settled: dict[Penalty, int]

    def best(self, *penalty: Any) -> Continuation:
        """Return the winner under a length penalty."""
        ended = [found for step in self.steps for found in step if found.fate == "ended"]
        return max(ended, key=lambda found: found.score(*penalty))


@torch.inference_mode()
def record_search(
    model: Transformer,
    source: Int[Tensor, "1 S"],
    size: int = 4,
    penalties: Sequence[Penalty] = ((0.0, "gnmt"), (0.6, "gnmt")),
) -> RecordedSearch:
    """Search, without a cache, until the search is settled under every penalty."""
    c, steps, settled = model.config, list[list[Continuation]](), dict[Penalty, int]()
    limit = source.size(1) - 1 + 50
    alive = [(-1, Continuation(-1, (), 0.0, "alive"))]  # with places
    with evaluation_mode(model):
        memory = model.encode(source)
        while len(settled) < len(penalties):
            given = source.new_tensor([[c.bos_id, *found.tokens] for _, found in alive])
            rows = memory.expand(len(given), -1, -1)
            logs = model.decode(given, rows, source.expand(len(given), -1))[:, -1].log_softmax(-1)
            logs[:, [c.pad_id, c.bos_id]] = -math.inf
            logs += logs.new_tensor([found.log_probability for _, found in alive])[:, None]
            best = logs.flatten().topk(min(2 * size, logs.numel()))
            step, before, alive = list[Continuation](), alive, []
            for total, place in zip(*(part.tolist() for part in best), strict=True):
                parent, prefix = before[place // logs.size(1)]
                tokens = (*prefix.tokens, place % logs.size(1))
                ends, room = tokens[-1] == c.eos_id, len(alive) < size
                fate: Fate = "ended" if ends else "alive" if room else "dropped"
                step.append(Continuation(parent, tokens, total, fate))
                if fate == "alive":
                    alive.append((len(step) - 1, step[-1]))
            steps.append(step)
            search = RecordedSearch(steps, settled)
            if any(found.fate == "ended" for step in steps for found in step):
                for penalty in penalties:
                    bound = alive[0][1].log_probability / length_penalty(limit, *penalty)
                    if len(steps) == limit or search.best(*penalty).score(*penalty) >= bound:
                        settled.setdefault(penalty, len(steps))
    return search


class BeamExplorer(Explorer):
    """Recorded searches, step by step, with the scores under several length penalties."""

    kind = "beam-explorer"
    parts = ("stepper.js", "stepper.css")
    size = (6.8, 4.6)

    def __init__(
        self, searches: Mapping[str, RecordedSearch], tokenizer: TokenizerLike, step: int = 0
    ):
        self.searches, self.tokenizer, self.step = dict(searches), tokenizer, step
        source, search = next(iter(self.searches.items()))
        self.penalties = [*search.settled]  # the same in all searches
        winners = "; ".join(
            f"by {self._name(penalty)}, “{self._text(search.best(*penalty))}”"
            for penalty in self.penalties
        )
        self.alt = f"A beam search for “{source}”, in {len(search.steps)} steps. Best: {winners}."

    def _text(self, found: Continuation) -> str:
        ids = [token for token in found.tokens if token != self.tokenizer.eos_id]
        return self.tokenizer.decode(ids).strip() or "(empty)"

    def _token(self, found: Continuation) -> str:
        return self.tokenizer.tokens([found.tokens[-1]])[0]

    def _name(self, penalty: Penalty) -> str:
        alpha, kind = penalty
        return f"{NAMES[kind]}, alpha {alpha:g}" if alpha else "probability alone"

    def _entry(self, found: Continuation) -> dict[str, Any]:
        entry = dict(parent=found.parent, token=self._token(found), fate=found.fate,
                     log=round(found.log_probability, 4))  # fmt: skip
        if found.fate != "dropped":
            entry["text"] = self._text(found)
        if found.fate == "ended":
            entry["scores"] = [round(found.score(*penalty), 4) for penalty in self.penalties]
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
                    "settled": [search.settled[penalty] for penalty in self.penalties],
                }
                for source, search in self.searches.items()
            ],
        }

    def draw(self, figure: Figure) -> None:
        """Draw what lived on or ended in the first steps of the first search, best at the top."""
        axes, before = figure.subplots(), {-1: (0.0, 0)}
        search = next(iter(self.searches.values()))
        for column, step in enumerate(search.steps[:_STILL], 1):
            places: dict[int, tuple[float, int]] = {}
            for place, found in enumerate(step):
                if found.fate == "dropped":
                    continue
                x, y = before[found.parent]
                row = len(places)
                axes.plot([x + 0.4, column - 0.4], [y, row], color=RULE, lw=1.2, zorder=1)
                colour = COLOURS["brown" if found.fate == "ended" else "purple"]
                name = self._token(found).strip("\u2581")[:8]
                axes.text(column, row, name, ha="center", va="center", size=8, c="white",
                          bbox=dict(boxstyle="round,pad=0.3", fc=colour, ec=colour))  # fmt: skip
                log = f"{found.log_probability:.2f}".replace("-", "\u2212")
                axes.text(column, row + 0.3, log, ha="center", va="center", size=7, c=SOFT)
                places[place] = column, row
            before = places
        columns = min(_STILL, len(search.steps))
        axes.set(ylim=(4.5, -0.5), xlim=(0.3, columns + 0.6), yticks=[])
        axes.set_xticks(np.arange(1, columns + 1))
        axes.set_xlabel(
            f"steps 1 to {columns} of {len(search.steps)}, with the log-probability of each prefix"
        )
        axes.grid(False)
        axes.spines[:].set_visible(False)
