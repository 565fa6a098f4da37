"""Greedy search and beam search: from the probability of the next token to a translation.

Lengths include the final EOS everywhere in this module: ``|Y|`` in the length penalty,
``max_length``, and the paper's default maximum, the source's real tokens (without EOS) plus 50.

The search adds up the model's own log-probabilities, as teacher forcing gives them. Padding and
BOS are never produced, and their probability is not redistributed to the other tokens.

A sentence's result does not depend on the rest of the batch, its order or the padding, up to
rounding: matrix products of another shape may differ in the last digit, so two translations that
tie to seven digits may swap. Exact ties go to the better-ranked beam, then to the lower token id
(among the 2 * beam_size best tokens of a beam, which ``torch.topk`` selects).
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import overload

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer.inference.options import LengthPenalty, SearchOptions, require_penalty
from transformer.inference.stepwise import (
    BatchRows,
    best_tokens,
    length_limits,
    next_log_probabilities,
    read_ended,
)
from transformer.model.base import TranslationModel, evaluation_mode


@dataclass(frozen=True)
class Hypothesis:
    """One translation of one sentence: ids without BOS and EOS.

    ``log_probability`` is the natural logarithm of the model's probability of the tokens and, if
    ``finished``, of the EOS after them; divided by the length penalty it is the ``score``, by which
    the search ranks. ``finished`` is False if the maximum length came before EOS.
    """

    tokens: list[int]
    log_probability: float
    score: float
    finished: bool = True


@overload
def length_penalty(length: int, alpha: float, kind: LengthPenalty = "gnmt") -> float: ...


@overload
def length_penalty(
    length: Int[Tensor, "..."], alpha: float, kind: LengthPenalty = "gnmt"
) -> Float[Tensor, "..."]: ...


def length_penalty(
    length: int | Tensor, alpha: float, kind: LengthPenalty = "gnmt"
) -> float | Tensor:
    """Return the divisor of a log-probability that keeps long translations from losing.

    Two formulas share the name, and the same alpha has a stronger effect in the second:

    * "gnmt": ``((5 + |Y|) / 6)^alpha``, as in GNMT and in the paper's own code.
    * "fairseq": ``|Y|^alpha``, as in fairseq; with alpha = 1 the mean over the tokens.

    Args:
        length: ``|Y|``, at least 1, including EOS; a number or a tensor of any shape.
        alpha: 0 for no penalty; the paper uses 0.6 for translation and 0.3 for parsing.
        kind: "gnmt" or "fairseq".

    Raises:
        ValueError: if ``kind`` is unknown.

    Paper: section 6.1
    """
    require_penalty("kind", kind)
    base = (5.0 + length) / 6.0 if kind == "gnmt" else 1.0 * length
    return base**alpha


def greedy_search(
    model: TranslationModel, source: Int[Tensor, "B S"], max_length: int | None = None
) -> list[Hypothesis]:
    """Take the most probable token at each step, until EOS.

    Args:
        model: the model; it is switched to evaluation mode for the duration of the search.
        source: token ids, right-padded, on the model's device.
        max_length: most tokens to produce for a sentence, including EOS; None for the number of
            its real tokens (without EOS) + 50.

    Returns:
        One hypothesis per sentence, in order. Its score is its log-probability.

    Raises:
        ValueError: if ``source`` is empty, has ids out of range or a sentence that is all padding,
            if ``max_length`` is not a whole number of at least 1 or too large for the memory, or if
            a logit of the model is NaN or +inf.
    """
    limits, eos_id = length_limits(model, source, max_length), model.config.eos_id
    longest, rows = max(limits), BatchRows(len(source), source.device)
    limit = rows.send(limits)
    tokens = source.new_zeros(len(source), longest)
    log_probability = torch.zeros(len(source), device=source.device)
    last = source.new_full((len(source),), model.config.bos_id)
    found: list[tuple[list[int], Tensor, Tensor]] = []  # sentences, tokens, log-probability
    with torch.inference_mode(), evaluation_mode(model):
        with _room_for(len(source), 1, longest):
            state = model.start_decoding(source, beam_size=1, max_length=longest)
        for length in range(1, longest + 1):
            log_probabilities = next_log_probabilities(model, last, state)
            step, best = best_tokens(log_probabilities, 1)
            last = tokens[:, length - 1] = best[:, 0]
            log_probability = log_probability + step[:, 0]
            ended = read_ended((last == eos_id) | (limit == length), log_probabilities, eos_id)
            if new := rows.newly_ended(ended):
                sentences, places = [rows.sentences[row] for row in new], rows.send(new)
                found.append((sentences, tokens[places], log_probability[places]))
            keep = rows.compact()
            if keep is None:
                continue
            if len(keep) == 0:
                break
            state.reorder(keep)
            kept = rows.send(keep)
            limit, tokens, last = limit[kept], tokens[kept], last[kept]
            log_probability = log_probability[kept]
    results: dict[int, Hypothesis] = {}
    numbers = [sentence for sentences, _, _ in found for sentence in sentences]
    ids = torch.cat([part for _, part, _ in found]).tolist()
    totals = torch.cat([part for _, _, part in found]).tolist()
    for sentence, row, total in zip(numbers, ids, totals, strict=True):
        results[sentence] = _hypothesis(row[: limits[sentence]], total, total, eos_id)
    return [results[i] for i in range(len(source))]


@overload
def beam_search(
    model: TranslationModel,
    source: Int[Tensor, "B S"],
    beam_size: int = 4,
    alpha: float = 0.6,
    max_length: int | None = None,
    n_best: None = None,
    penalty: LengthPenalty = "gnmt",
) -> list[Hypothesis]: ...


@overload
def beam_search(
    model: TranslationModel,
    source: Int[Tensor, "B S"],
    beam_size: int = 4,
    alpha: float = 0.6,
    max_length: int | None = None,
    *,
    n_best: int,
    penalty: LengthPenalty = "gnmt",
) -> list[list[Hypothesis]]: ...


def beam_search(
    model: TranslationModel,
    source: Int[Tensor, "B S"],
    beam_size: int = 4,
    alpha: float = 0.6,
    max_length: int | None = None,
    n_best: int | None = None,
    penalty: LengthPenalty = "gnmt",
) -> list[Hypothesis] | list[list[Hypothesis]]:
    """Extend the ``beam_size`` most probable prefixes in parallel; return the best translation.

    Each step considers the 2 * beam_size most probable continuations. Those that end in EOS compete
    by score for ``beam_size`` places among the finished; the best ``beam_size`` of the others stay
    alive. At most ``beam_size`` continuations can be endings, so enough are left.

    A sentence leaves the batch as soon as no prefix that is alive can change its result (see
    ``_Beams.settled``).

    Args:
        model: the model; it is switched to evaluation mode for the duration of the search.
        source: token ids, right-padded, on the model's device.
        beam_size: prefixes to extend. 1 is greedy search for any ``alpha``.
        alpha: exponent of the length penalty, -10 to 10. Above 0 it favours long translations.
        max_length: most tokens to produce for a sentence, including EOS; None for the number of
            its real tokens (without EOS) + 50.
        n_best: number of hypotheses to return per sentence, 1 to ``beam_size``.
        penalty: formula of the length penalty, see :func:`length_penalty`.

    Returns:
        The best hypothesis of each sentence, in order. With ``n_best``, a list of up to ``n_best``
        for each sentence, best first. Hypotheses without EOS come last, and only if there are too
        few with EOS.

    Raises:
        ValueError: if ``source`` is empty, has ids out of range or a sentence that is all padding,
            if another argument is out of range, not a number, or too large for the memory, or if a
            logit of the model is NaN or +inf.

    Paper: section 6.1
    """
    options = SearchOptions(beam_size, alpha, penalty, max_length, n_best)  # checks them
    beam_size, alpha, max_length, n_best = (
        options.beam_size, options.alpha, options.max_length, options.n_best,
    )  # fmt: skip
    if beam_size == 1:
        found = greedy_search(model, source, max_length)
        greedy = [_rescored(best, alpha, penalty) for best in found]
        return greedy if n_best is None else [[best] for best in greedy]

    limits, eos_id = length_limits(model, source, max_length), model.config.eos_id
    longest, rows = max(limits), BatchRows(len(source), source.device)
    # One table for scores and bounds, so that both are rounded in the same way.
    table = length_penalty(torch.arange(longest + 2, device=source.device), alpha, penalty)
    last = source.new_full((len(source) * beam_size,), model.config.bos_id)
    ranked: list[tuple[list[int], _Ranked]] = []  # sentences and their hypotheses
    with torch.inference_mode(), evaluation_mode(model):
        with _room_for(len(source), beam_size, longest):
            beams = _Beams(rows.send(limits), longest, beam_size, table, n_best or 1, eos_id)
            state = model.start_decoding(source, beam_size=beam_size, max_length=longest)
        for length in range(1, longest + 1):
            log_probabilities = next_log_probabilities(model, last, state)
            parents = beams.grow(log_probabilities, length)
            ended = read_ended(beams.settled(length), log_probabilities, eos_id)
            if new := rows.newly_ended(ended):
                sentences = [rows.sentences[row] for row in new]
                ranked.append((sentences, beams.hypotheses(rows.send(new))))
            keep = rows.compact()
            if keep is not None:
                if len(keep) == 0:
                    break
                state.reorder(_beam_rows(keep, torch.arange(beam_size)))
                kept = rows.send(keep)
                beams.keep(kept)
                parents = parents[kept]
            last = beams.tokens[:, :, length - 1].flatten()
            state.reorder(_beam_rows(torch.arange(len(parents), device=parents.device), parents))
    results = _read(ranked, limits, eos_id)
    return results if n_best is not None else [best[0] for best in results]


@contextmanager
def _room_for(sentences: int, beam_size: int, max_length: int) -> Iterator[None]:
    """Say in one sentence that the memory of the CPU does not hold a search."""
    try:
        yield
    except RuntimeError as error:
        if "can't allocate memory" not in str(error):
            raise
        raise ValueError(
            f"max_length {max_length} needs more memory than this machine has, with {sentences} "
            f"sentences and beam_size {beam_size}"
        ) from None


def _beam_rows(sentences: Int[Tensor, " n"], beams: Int[Tensor, "..."]) -> Int[Tensor, " rows"]:
    """Return the row numbers of some beams of some sentences."""
    return (sentences[:, None] * beams.size(-1) + beams).flatten()


class _Beams:
    """The alive and the finished hypotheses of every sentence that is still in the batch.

    All tensors except the table of penalties have a row per sentence and a column per hypothesis,
    best first. An empty place has the log-probability -inf.
    """

    def __init__(
        self, limit: Tensor, longest: int, width: int, penalty: Tensor, wanted: int, eos_id: int
    ):
        self.limit, self.width, self.wanted, self.eos_id = limit, width, wanted, eos_id
        self.penalty, device = penalty, limit.device
        self.tokens = limit.new_zeros(len(limit), width, longest)
        self.log_probability = torch.full((len(limit), width), -math.inf, device=device)
        self.finished_tokens = torch.zeros_like(self.tokens)
        self.finished_log_probability = self.log_probability.clone()
        self.finished_score = self.log_probability.clone()
        # The search starts from one empty hypothesis, not from ``width`` equal ones.
        self.log_probability[:, 0] = 0.0

    def grow(
        self, log_probabilities: Float[Tensor, "rows V"], length: int
    ) -> Int[Tensor, "n width"]:
        """Extend the alive hypotheses to ``length``; return the beam that each one came from."""
        n, twice = len(self.limit), 2 * self.width
        # The best 2 * width continuations of a sentence are among those of its rows. Sorting them
        # by id settles ties.
        step, token = best_tokens(log_probabilities, twice)
        token, order = token.sort(dim=-1)
        step = step.gather(-1, order)
        total = self.log_probability[:, :, None] + step.view(n, self.width, -1)
        total, choice = _best(total.flatten(1), twice)
        parent = choice // step.shape[-1]
        token = token.view(n, -1).gather(1, choice)
        grown = _pick(self.tokens, parent)
        grown[:, :, length - 1] = token
        ends = token == self.eos_id

        ended = total.masked_fill(~ends, -math.inf)
        score = torch.cat([self.finished_score, ended / self.penalty[length]], dim=1)
        self.finished_score, place = _best(score, self.width)
        ended = torch.cat([self.finished_log_probability, ended], dim=1)
        self.finished_log_probability = ended.gather(1, place)
        self.finished_tokens = _pick(torch.cat([self.finished_tokens, grown], dim=1), place)

        self.log_probability, place = _best(total.masked_fill(ends, -math.inf), self.width)
        self.tokens = _pick(grown, place)
        return parent.gather(1, place)

    def settled(self, length: int) -> Bool[Tensor, " n"]:
        """Mark the sentences whose result further steps cannot change.

        Every token multiplies a probability by at most 1, so the log-probability a <= 0 of the
        best alive hypothesis bounds those of all its continuations. It will be divided by the
        penalty of some length from ``length`` + 1 to the limit, and as a is not positive, the
        largest of these penalties is the most favourable. Either penalty rises with the length if
        alpha > 0, falls if alpha < 0 and stays 1 if alpha = 0, so the largest is at one end.

        If the last of the wanted finished hypotheses reaches this bound, all of them stay: a later
        hypothesis with an equal score ranks behind. Rounding preserves this, because adding a
        number <= 0 never makes a float larger, and a division keeps the order.
        """
        favourable = torch.maximum(self.penalty[length + 1], self.penalty[self.limit])
        bound = self.log_probability[:, 0] / favourable
        return (self.finished_score[:, self.wanted - 1] >= bound) | (self.limit == length)

    def keep(self, rows: Int[Tensor, " kept"]) -> None:
        """Drop the other sentences."""
        for name, value in vars(self).items():
            if isinstance(value, Tensor) and name != "penalty":
                setattr(self, name, value[rows])

    def hypotheses(self, rows: Int[Tensor, " ended"]) -> "_Ranked":
        """Return the wanted hypotheses of some sentences, finished ones first."""
        alive = self.log_probability[rows] / self.penalty[self.limit[rows], None]
        tokens = torch.cat([self.finished_tokens[rows], self.tokens[rows]], dim=1)
        total = torch.cat([self.finished_log_probability[rows], self.log_probability[rows]], dim=1)
        score = torch.cat([self.finished_score[rows], alive], dim=1)
        filled = (total > -math.inf).byte()
        first = filled.argsort(dim=1, descending=True, stable=True)[:, : self.wanted]
        return _pick(tokens, first), total.gather(1, first), score.gather(1, first)


# Tokens (n, k, T), log-probabilities and scores (n, k) of n sentences, the best hypothesis first.
# Several of them in one list differ in n, which a named size would forbid.
_Ranked = tuple[Int[Tensor, "_ _ _"], Float[Tensor, "_ _"], Float[Tensor, "_ _"]]


def _read(
    found: list[tuple[list[int], _Ranked]], limits: list[int], eos_id: int
) -> list[list[Hypothesis]]:
    """Copy hypotheses to the host, by sentence; leave out empty places."""
    results: list[list[Hypothesis]] = [[] for _ in limits]
    sentences = [sentence for numbers, _ in found for sentence in numbers]
    parts = zip(*[ranked for _, ranked in found], strict=True)
    tokens, total, score = (torch.cat(part).tolist() for part in parts)
    for i, sentence in enumerate(sentences):
        results[sentence] = [
            _hypothesis(ids[: limits[sentence]], log_probability, value, eos_id)
            for ids, log_probability, value in zip(tokens[i], total[i], score[i], strict=True)
            if log_probability > -math.inf
        ]
    return results


def _best(values: Float[Tensor, "n m"], count: int) -> tuple[Tensor, Tensor]:
    """Return the ``count`` largest values of each row and their places, ties in order."""
    values, places = values.sort(dim=1, descending=True, stable=True)
    return values[:, :count], places[:, :count]


def _pick(tokens: Int[Tensor, "n m T"], places: Int[Tensor, "n k"]) -> Int[Tensor, "n k T"]:
    return tokens.gather(1, places[:, :, None].expand(-1, -1, tokens.shape[-1]))


def _hypothesis(ids: list[int], log_probability: float, score: float, eos_id: int) -> Hypothesis:
    """Cut the ids at EOS, if there is one."""
    finished = eos_id in ids
    ids = ids[: ids.index(eos_id)] if finished else ids
    return Hypothesis(ids, log_probability, score, finished)


def _rescored(hypothesis: Hypothesis, alpha: float, penalty: LengthPenalty) -> Hypothesis:
    length = len(hypothesis.tokens) + hypothesis.finished
    score = hypothesis.log_probability / length_penalty(length, alpha, penalty)
    return replace(hypothesis, score=score)
