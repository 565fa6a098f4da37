"""The steps that greedy search and beam search share."""

import math
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer.inference.options import SearchOptions
from transformer.model.base import TranslationModel
from transformer.model.embedding import ID_TYPES

EXTRA_LENGTH = 50

# Group sizes of best_tokens: a multiple of a processor's vector width, and a number that leaves few
# candidates and few groups.
_NEIGHBOURS, _ROWS = 128, 8


def next_log_probabilities(
    model: TranslationModel, last: Int[Tensor, " rows"], state: Any
) -> Float[Tensor, "rows V"]:
    """Compute the natural logarithms of the probability of the next token of each row, in float32.

    They are -inf at padding and BOS, which are never produced. A logit that is NaN or +inf makes
    its whole row NaN; a logit of -inf rules its token out.
    """
    found = model.decode_next(last, state).float().log_softmax(dim=-1)
    found[:, model.config.pad_id] = found[:, model.config.bos_id] = -math.inf
    return found


def read_ended(
    ended: Bool[Tensor, " n"], log_probabilities: Float[Tensor, "rows V"], eos_id: int
) -> list[bool]:
    """Copy to the host which sentences have ended: the only wait for a GPU in a step of a search.

    ValueError if a log-probability of the step is NaN.
    """
    invalid = log_probabilities[:, eos_id].isnan().any()
    *found, not_finite = torch.cat([ended, invalid[None]]).tolist()
    if not_finite:
        raise ValueError("model: its logits are not finite numbers (NaN, +inf, or a row of -inf)")
    return found


class BatchRows:
    """Which sentence each row of the batch of a search holds, known without waiting for a GPU."""

    def __init__(self, count: int, device: torch.device):
        self.sentences = list(range(count))
        self.device = device
        self._ended = [False] * count

    def newly_ended(self, ended: list[bool]) -> list[int]:
        """Note the rows that have ended by now and return those that had not ended before."""
        new = [row for row, now in enumerate(ended) if now and not self._ended[row]]
        for row in new:
            self._ended[row] = True
        return new

    def compact(self) -> Int[Tensor, " kept"] | None:
        """Drop the rows that have ended; None while they are fewer than one in eight.

        Compacting the batch costs a copy, so as few rows as possible move: the last ones fill the
        places of those that leave. Returns, on the CPU, the old number of each row that stays.
        """
        ended = self._ended
        if 8 * sum(ended) < len(ended):
            return None
        stay = [row for row, gone in enumerate(ended) if not gone]
        movers = iter([row for row in stay if row >= len(stay)])
        rows = [next(movers) if ended[place] else place for place in range(len(stay))]
        self.sentences = [self.sentences[row] for row in rows]
        self._ended = [False] * len(rows)
        return torch.tensor(rows, dtype=torch.long)

    def send(self, rows: list[int] | Int[Tensor, " rows"]) -> Int[Tensor, " rows"]:
        """Copy row numbers to the device."""
        return torch.as_tensor(rows, dtype=torch.long).to(self.device, non_blocking=True)


def best_tokens(
    values: Float[Tensor, "rows V"], count: int
) -> tuple[Float[Tensor, "rows count"], Int[Tensor, "rows count"]]:
    """Find the ``count`` largest values of each row and their tokens, fewer if V is smaller.

    The maxima of many groups cost much less than a sort, and the ``count`` best values are in the
    ``count`` best groups. If ``count`` is 1, a group is a block of neighbours, so that the first of
    equal values is found; otherwise it is a strided set of tokens, which is faster, and
    ``torch.topk`` decides between equal values.
    """
    size, device = values.size(1), values.device
    if count == 1:
        width = min(_NEIGHBOURS, size)
        end = size - size % width
        largest = values[:, :end].unflatten(1, (-1, width)).amax(-1).argmax(-1, keepdim=True)
        group, step = largest * width, torch.arange(width, device=device)
    else:
        columns = max(1, size // _ROWS)
        end = size - size % columns
        largest = values[:, :end].unflatten(1, (-1, columns)).amax(1)
        group = largest.topk(min(count, columns)).indices
        step = torch.arange(0, end, columns, device=device)
    tokens = (group[:, :, None] + step).flatten(1)
    if end < size:
        rest = torch.arange(end, size, device=device).expand(len(values), -1)
        tokens = torch.cat([tokens, rest], dim=1)
    values = values.gather(1, tokens)
    if count == 1:
        values, places = values.max(dim=1, keepdim=True)
    else:
        values, places = values.topk(min(count, size))
    return values, tokens.gather(1, places)


def length_limits(
    model: TranslationModel, source: Int[Tensor, "B S"], max_length: int | None
) -> list[int]:
    """Check the source and return the maximum output length of each sentence, including EOS.

    Paper: section 6.1 (maximum output length: input length + 50)
    """
    max_length = SearchOptions(max_length=max_length).max_length  # checks it
    config = model.config
    if source.dim() != 2 or source.dtype not in ID_TYPES:
        raise ValueError(
            "source must be token ids of shape (B, S), int64 or int32, "
            f"got {source.dtype} of {tuple(source.shape)}"
        )
    if source.numel() == 0:
        raise ValueError(f"source must hold at least one token, got shape {tuple(source.shape)}")
    real = source != config.pad_id
    gap = (real[:, 1:] & ~real[:, :-1]).any()
    words = (real & (source != config.eos_id)).sum(dim=1)
    checked = torch.stack([source.min(), source.max(), gap.long()])
    # A GPU is waited for once.
    low, high, gap_found, *found = torch.cat([checked, real.sum(dim=1), words]).tolist()
    real_tokens, lengths = found[: len(source)], found[len(source) :]
    if low < 0 or high >= config.vocab_size:
        raise ValueError(f"source ids must be in 0..{config.vocab_size - 1}, got {low}..{high}")
    blank = [row for row, count in enumerate(real_tokens) if count == 0]
    if blank:
        raise ValueError(f"source must have a real token in each row, rows {blank} are padding")
    if gap_found:
        raise ValueError("source must be padded at the end of each row")
    if max_length is not None:
        return [max_length] * len(source)
    longest = math.inf if model.longest is None else model.longest
    return [min(length + EXTRA_LENGTH, longest) for length in lengths]
