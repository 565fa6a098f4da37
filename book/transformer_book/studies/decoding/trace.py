"""Beam search with a trace, which has the result under any length penalty and rule to stop."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer.inference.decoding import Hypothesis, length_penalty
from transformer.inference.options import LengthPenalty
from transformer.inference.stepwise import best_tokens, length_limits, next_log_probabilities
from transformer.model.base import TranslationModel, evaluation_mode
from transformer.model.transformer import Transformer

Penalty = tuple[float | int, LengthPenalty]


@dataclass
class SearchTrace:
    """The course of a beam search for one sentence."""

    beam_size: int
    limit: int  #: largest number of tokens of a translation, including EOS.
    #: (tokens without EOS, log-probability with EOS) of all translations that ended, in the order
    #: in which they were found; those of equal length by probability.
    endings: list[tuple[list[int], float]] = field(default_factory=list)
    #: log-probability of the best living beginning after each step, -inf without any.
    alive: list[float] = field(default_factory=list)
    leading: list[bool] = field(default_factory=list)
    #: highest log-probability among all beginnings and endings that were dropped.
    dropped: float = -math.inf
    unfinished: tuple[list[int], float] | None = None

    def best(
        self, alpha: float | int = 0.6, penalty: LengthPenalty = "gnmt", steps: int | None = None
    ) -> Hypothesis | None:
        """Return the result under a length penalty; None if nothing ended in ``steps`` steps."""
        found = None
        for tokens, total in self.endings:
            length = len(tokens) + 1
            if steps is not None and length > steps:
                break  # each step adds one token, so endings are sorted by length
            score = total / length_penalty(length, alpha, penalty)
            if found is None or score > found.score:
                found = Hypothesis(tokens, total, score)
        if found is None and self.unfinished and (steps is None or steps >= self.limit):
            tokens, total = self.unfinished
            score = total / length_penalty(self.limit, alpha, penalty)
            found = Hypothesis(tokens, total, score, finished=False)
        return found

    def settled(self, alpha: float | int = 0.6, penalty: LengthPenalty = "gnmt") -> int | None:
        """Return the step after which :meth:`best` cannot change any more."""
        at_limit = length_penalty(self.limit, alpha, penalty)
        best, waiting = -math.inf, 0
        for step, alive in enumerate(self.alive, 1):
            while waiting < len(self.endings) and len(self.endings[waiting][0]) < step:
                score = self.endings[waiting][1] / length_penalty(step, alpha, penalty)
                best, waiting = max(best, score), waiting + 1
            favourable = max(length_penalty(step + 1, alpha, penalty), at_limit)
            if step == self.limit or best >= alive / favourable:
                return step
        return None

    def proven(self, alpha: float | int = 0.6, penalty: LengthPenalty = "gnmt") -> bool:
        """Return whether no translation within the limit, found or not, can score higher."""
        found = self.best(alpha, penalty)
        favourable = max(length_penalty(n, alpha, penalty) for n in (1, self.limit))
        if found is None or not found.finished or self.settled(alpha, penalty) is None:
            return False
        return found.score >= self.dropped / favourable

    def first_full(self) -> int | None:
        """Return the step after which ``beam_size`` translations had ended."""
        if len(self.endings) < self.beam_size:
            return None
        return len(self.endings[self.beam_size - 1][0]) + 1

    def first_leading(self) -> int | None:
        """Return the first step whose most probable continuation was an ending."""
        return self.leading.index(True) + 1 if any(self.leading) else None


@torch.inference_mode()
def trace_search(
    model: TranslationModel,
    source: Int[Tensor, "B S"],
    beam_size: int = 4,
    penalties: Sequence[Penalty] = ((0.0, "gnmt"), (0.6, "gnmt")),
    max_length: int | None = None,
) -> list[SearchTrace]:
    """Search as :func:`~transformer.inference.decoding.beam_search` does, and keep a trace."""
    limits, eos_id = length_limits(model, source, max_length), model.config.eos_id
    longest, device = max(limits), source.device
    limit = torch.tensor(limits, device=device)
    lengths = torch.arange(longest + 2, device=device)
    tables = [length_penalty(lengths, alpha, kind) for alpha, kind in penalties]
    traces = [SearchTrace(beam_size, n) for n in limits]
    sentence = torch.arange(len(source), device=device)
    tokens = source.new_zeros(len(source), beam_size, 0)
    alive = torch.full((len(source), beam_size), -math.inf, device=device)
    alive[:, 0] = 0.0
    best = torch.full((len(source), len(tables)), -math.inf, device=device)
    last = torch.full((len(source) * beam_size,), model.config.bos_id, device=device)
    look = 2 * beam_size if beam_size > 1 else 1  # a beam of one is greedy search
    with evaluation_mode(model):
        state = model.start_decoding(source, beam_size=beam_size, max_length=longest)
        for length in range(1, longest + 1):
            # One more than the search considers: the best of those that it ignores.
            total, parent, token = _continuations(model, last, state, alive, look + 1)
            grown = tokens.gather(1, parent[:, :, None].expand(-1, -1, length - 1))
            grown = torch.cat([grown, token[:, :, None]], dim=-1)
            seen, ends = total[:, :look], token[:, :look] == eos_id
            living = seen.masked_fill(ends, -math.inf)
            living, place = living.sort(dim=1, descending=True, stable=True)
            alive, place, cut = living[:, :beam_size], place[:, :beam_size], living[:, beam_size:]
            dropped = torch.cat([total[:, look:], cut], dim=1)
            _write(traces, sentence, grown, seen, ends, alive, dropped)
            if tables:
                ended = seen.masked_fill(~ends, -math.inf).amax(dim=1)
                scores = torch.stack([ended / table[length] for table in tables], dim=1)
                best = torch.maximum(best, scores)
            stop = _settled(best, alive[:, 0], tables, limit, length)
            for row in ((limit == length) & (alive[:, 0] > -math.inf)).nonzero().flatten().tolist():
                best_place, total_log = place[row, 0], alive[row, 0].item()
                traces[sentence[row]].unfinished = grown[row, best_place].tolist(), total_log
            keep = (~stop).nonzero().flatten()
            if len(keep) == 0:
                break
            rows = torch.arange(len(limit), device=device)[:, None] * beam_size
            rows = (rows + parent.gather(1, place))[keep].flatten()
            place = place[:, :, None].expand(-1, -1, length)
            tokens = grown.gather(1, place)[keep]
            sentence, limit, alive, best = sentence[keep], limit[keep], alive[keep], best[keep]
            last = tokens[:, :, -1].flatten()
            state.reorder(rows)
    return traces


def exact_search(
    model: TranslationModel,
    source: Int[Tensor, "B S"],
    alpha: float | int = 0.0,
    penalty: LengthPenalty = "gnmt",
    max_length: int | None = None,
    beam_size: int = 8,
    widest: int = 512,
) -> list[SearchTrace]:
    """Widen the beam of each sentence until its result is provably the best of all."""
    results: dict[int, SearchTrace] = {}
    open_rows = list(range(len(source)))
    while open_rows and beam_size <= widest:
        # A wide beam of many sentences would not fit into memory.
        at_once = max(1, 1024 // beam_size)
        for start in range(0, len(open_rows), at_once):
            rows = open_rows[start : start + at_once]
            batch = source[rows]
            batch = batch[:, (batch != model.config.pad_id).any(dim=0)]
            traces = trace_search(model, batch, beam_size, [(alpha, penalty)], max_length)
            for row, trace in zip(rows, traces, strict=True):
                results[row] = trace
        open_rows = [row for row in open_rows if not results[row].proven(alpha, penalty)]
        beam_size *= 4
    return [results[row] for row in range(len(source))]


@torch.inference_mode()
def log_probabilities(
    model: Transformer, source: Int[Tensor, "B S"], targets: Sequence[Sequence[int]]
) -> Float[Tensor, " B"]:
    """Return the model's log-probability of given translations."""
    c, longest = model.config, max(map(len, targets), default=0) + 1
    labels = source.new_full((len(source), longest), c.pad_id)
    for row, target in enumerate(targets):
        labels[row, : len(target) + 1] = torch.tensor([*target, c.eos_id])
    inputs = labels.roll(1, dims=1)
    inputs[:, 0] = c.bos_id
    with evaluation_mode(model):
        step = model(source, inputs).float().log_softmax(dim=-1)
    step = step.gather(-1, labels[:, :, None])[:, :, 0]
    return step.masked_fill(labels == c.pad_id, 0.0).sum(dim=1)


def _continuations(
    model: TranslationModel, last: Tensor, state: object, alive: Float[Tensor, "n W"], count: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return log-probability, beam and token of each sentence's most probable continuations."""
    n, width = alive.shape
    step, token = best_tokens(next_log_probabilities(model, last, state), count)
    token, order = token.sort(dim=-1)  # ties go to the lower id, as in beam_search
    step = step.gather(-1, order)
    total = (alive[:, :, None] + step.view(n, width, -1)).flatten(1)
    total, choice = total.sort(dim=1, descending=True, stable=True)
    total, choice = total[:, :count], choice[:, :count]
    return total, choice // step.shape[-1], token.view(n, -1).gather(1, choice)


def _write(
    traces: list[SearchTrace],
    sentence: Tensor,
    grown: Tensor,
    seen: Tensor,
    ends: Tensor,
    alive: Tensor,
    dropped: Tensor,
) -> None:
    """Add one step to the traces of the sentences that are still searched."""
    real = ends & (seen > -math.inf)
    for row, column in real.nonzero().tolist():
        ending = grown[row, column, :-1].tolist(), seen[row, column].item()
        traces[sentence[row]].endings.append(ending)
    lost = dropped.amax(dim=1).tolist()
    for row, number in enumerate(sentence.tolist()):
        trace = traces[number]
        trace.alive.append(alive[row, 0].item())
        trace.leading.append(bool(real[row, 0]))
        trace.dropped = max(trace.dropped, lost[row])


def _settled(
    best: Tensor, alive: Tensor, tables: list[Tensor], limit: Tensor, length: int
) -> Tensor:
    """Return which sentences are settled under all penalties."""
    stop = alive == -math.inf if not tables else torch.ones_like(limit, dtype=torch.bool)
    for i, table in enumerate(tables):
        stop &= best[:, i] >= alive / torch.maximum(table[length + 1], table[limit])
    return stop | (limit == length)
