"""Token ids of sentence pairs in flat arrays, and batches by token budget.

The cost of a batch is the size of its padded matrices, not the number of its sentences. So a
batch holds as many pairs as fit a budget of token positions, and pairs are first sorted by length
to reduce padding.
"""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Int, Int32, Int64, UInt16
from torch import Tensor

from transformer.data.model_tokenizers import (
    SPECIAL_IDS,
    TokenizerLike,
    joint_checksum,
    require_equal,
)
from transformer.data.parallel import kept_pairs
from transformer.settings import COUNT, or_none, whole

# Pairs encoded at once: enough for all threads, few enough to need little memory.
_CHUNK = 10_000


@dataclass(frozen=True)
class Sentences:
    """Token ids of many sentences in one flat array: a tenth of the memory of lists."""

    #: The concatenated sentences, each with its ``<eos>``; may be a memory-mapped file.
    ids: Int32[np.ndarray, " tokens"] | UInt16[np.ndarray, " tokens"]
    #: Start of each sentence, and the end of the last.
    offsets: Int64[np.ndarray, " rows_plus_1"]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def lengths(
        self, rows: Int64[np.ndarray, " B"] | slice = slice(None)
    ) -> Int64[np.ndarray, " B"]:
        """Return the number of ids, ``<eos>`` included, of all sentences or of some."""
        return self.offsets[1:][rows] - self.offsets[:-1][rows]

    def __getitem__(self, row: int) -> list[int]:
        row = range(len(self))[row]
        return self.ids[self.offsets[row] : self.offsets[row + 1]].tolist()

    def padded(self, rows: Int64[np.ndarray, " B"], pad_id: int) -> Int64[np.ndarray, "B T"]:
        """Return some sentences as one matrix, padded on the right to the longest of them."""
        lengths = self.lengths(rows)
        position = np.arange(lengths.max())
        real = position < lengths[:, None]
        matrix = np.full(real.shape, pad_id, dtype=np.int64)
        matrix[real] = self.ids[(self.offsets[rows, None] + position)[real]]
        return matrix


@dataclass(frozen=True)
class EncodedPairs:
    """A split as token ids, with the ids of padding and ``<bos>``.

    ``tokenizer`` is the checksum of the tokenizer that made the ids, None if it has none.
    """

    source: Sentences
    target: Sentences
    pad_id: int = 0
    bos_id: int = 1
    tokenizer: str | None = None

    def __len__(self) -> int:
        return len(self.source)

    @cached_property
    def checksum(self) -> int:
        """CRC-32 of all ids, source before target; equal for equal text and tokenizer."""
        return ids_checksum([self.source.ids, self.target.ids])

    @cached_property
    def by_length(self) -> "ByLength":
        """The pairs sorted by length, for batching."""
        source, target = self.source.lengths(), self.target.lengths()
        order = np.lexsort((np.where(target % 2 == 0, source, -source), target))
        return ByLength(order, source[order].astype(np.int32), target[order].astype(np.int32))


class ByLength(NamedTuple):
    """Numbers and lengths of pairs, sorted by target length, then source length.

    Source lengths alternately rise and fall from one target length to the next, so that a batch
    that spans two does not combine the longest sources with the shortest.
    """

    rows: Int64[np.ndarray, " pairs"]
    source: Int32[np.ndarray, " pairs"]
    target: Int32[np.ndarray, " pairs"]


def ids_checksum(
    arrays: Iterable[Int32[np.ndarray, " _"] | UInt16[np.ndarray, " _"]], start: int = 0
) -> int:
    """Return the CRC-32 of token ids of any type; ``start`` is that of the ids before them."""
    for ids in arrays:
        start = zlib.crc32(ids.astype(np.int32, copy=False).data, start)
    return start


def encode_pairs(
    tokenizer: TokenizerLike,
    split: Iterable[tuple[str, str]],
    target_tokenizer: TokenizerLike | None = None,
) -> EncodedPairs:
    """Encode a split; every sentence ends with ``<eos>``.

    A pair with a blank side is left out, with a warning. The ids are held in memory;
    :func:`~transformer.data.token_cache.cached_pairs` keeps them on disk.

    Args:
        tokenizer: of both languages, or of the source if there is a ``target_tokenizer``.
        split: a :class:`~transformer.data.parallel.Split`, or any pairs of sentences.

    Raises:
        ValueError: if the tokenizers have different ids of padding, ``<bos>`` or ``<eos>``, or
            every pair has a blank side.
        TypeError: if a pair is not two strings, such as one with None; the message names its row.
    """
    if target_tokenizer is not None:
        require_equal(SPECIAL_IDS, tokenizer, target_tokenizer, "target_tokenizer")
    nothing = np.empty(0, np.int32), np.zeros(1, np.int64)
    chunks = [(nothing, nothing), *encoded_chunks(tokenizer, split, target_tokenizer)]
    source, target = (
        Sentences(*map(np.concatenate, zip(*side, strict=True)))
        for side in zip(*chunks, strict=True)
    )
    checksum = joint_checksum(tokenizer, target_tokenizer or tokenizer)
    return EncodedPairs(source, target, tokenizer.pad_id, tokenizer.bos_id, checksum)


# Ids of concatenated sentences, and the end of each.
Ends = tuple[Int32[np.ndarray, " tokens"], Int64[np.ndarray, " rows"]]


def encoded_chunks(
    tokenizer: TokenizerLike,
    split: Iterable[tuple[str, str]],
    target_tokenizer: TokenizerLike | None = None,
) -> Iterator[tuple[Ends, Ends]]:
    """Encode a split in chunks of pairs, without those that have a blank side.

    Yields both sides: the ids, and where each sentence ends, counted from the split's first id.
    """
    pairs, totals = kept_pairs(split, "split", max_words=None), [0, 0]
    while chunk := list(islice(pairs, _CHUNK)):
        sides = []
        for i, texts in enumerate(zip(*chunk, strict=True)):
            side = tokenizer if i == 0 else target_tokenizer or tokenizer
            encoded = side.encode_batch(texts)
            ends = totals[i] + np.cumsum([len(row) + 1 for row in encoded], dtype=np.int64)
            totals[i] = int(ends[-1])
            end = [tokenizer.eos_id]
            flat = chain.from_iterable(chain(row, end) for row in encoded)
            sides.append((np.fromiter(flat, np.int32), ends))
        yield sides[0], sides[1]


@dataclass(frozen=True)
class Batch:
    """Sentence pairs as matrices, padded on the right.

    Paper: section 3.1
    """

    source: Int[Tensor, "B S"]  #: source ids with ``<eos>``
    target_input: Int[Tensor, "B T"]  #: ``<bos>`` and the target ids: the decoder's input
    labels: Int[Tensor, "B T"]  #: target ids with ``<eos>``: the tokens to predict
    num_source_tokens: int  #: source positions that are not padding
    num_target_tokens: int  #: labels that are not padding
    #: Positions of these labels in ``labels.flatten()``. If None, the loss searches for them,
    #: which synchronises with a GPU.
    rows: Int[Tensor, "N"] | None = None

    def __len__(self) -> int:
        return self.source.shape[0]

    def to(self, device: torch.device | str, non_blocking: bool = False) -> "Batch":
        """Return the batch on another device; ``non_blocking`` as for ``Tensor.to``."""
        moved: dict[str, Any] = {
            name: tensor.to(device, non_blocking=non_blocking)
            for name, tensor in vars(self).items()
            if isinstance(tensor, Tensor)
        }
        return replace(self, **moved)


class TokenBatches:
    """Plan the batches of each epoch, with at most ``batch_tokens`` token positions per side.

    The positions of a side are rows x longest row, ``<eos>`` and padding included. Pairs are
    sorted by target length, then source length; pairs of equal lengths are shuffled, so that a
    sentence meets others in each epoch. Then the batches are shuffled. Every epoch has the same
    number of batches.

    The plan depends only on the pairs, ``batch_tokens``, ``max_length``, ``seed`` and the number
    of the epoch. So a run that stopped in epoch ``e`` resumes with ``epoch(e)[k:]``.

    Args:
        pairs: encoded pairs.
        batch_tokens: budget of each side in token positions, at least 1.
        seed: of the shuffles, at least 0.
        max_length: length limit of either side, in tokens with ``<eos>``; None for no limit except
            the budget. Longer pairs are dropped and counted in ``num_dropped``.

    Raises:
        ValueError: if a number is out of range, or no pair is left.

    Paper: section 5.1
    """

    def __init__(
        self,
        pairs: EncodedPairs,
        batch_tokens: int,
        seed: int = 0,
        max_length: int | None = None,
    ) -> None:
        self.pairs = pairs
        self.batch_tokens = batch_tokens = COUNT("batch_tokens", batch_tokens)
        self.seed = whole(0)("seed", seed)
        self.max_length = max_length = or_none(COUNT)("max_length", max_length)
        rows, source, target = pairs.by_length
        longest = np.maximum(source, target)
        limit = batch_tokens if max_length is None else min(batch_tokens, max_length)
        kept = longest <= limit
        #: Number of pairs longer than ``max_length`` or ``batch_tokens``, which are left out.
        self.num_dropped = int(len(kept) - kept.sum())
        if self.num_dropped == len(kept):
            raise ValueError(
                f"no pair to batch: all {len(pairs)} pairs are longer than {limit} tokens"
            )
        if self.num_dropped:
            rows, source, target, longest = rows[kept], source[kept], target[kept], longest[kept]
        self._rows, self._cuts = rows, self._cut(longest)
        # Indices at which the lengths of the sorted rows change, and both ends.
        changes = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
        self._runs = [0, *(np.flatnonzero(changes) + 1).tolist(), len(rows)]

    def _cut(self, longest: Int32[np.ndarray, " rows"]) -> list[int]:
        """Return the starts of the batches after the first, each as large as the budget allows."""
        cuts: list[int] = []
        start, budget = 0, self.batch_tokens
        while start < len(longest):
            most = budget // max(1, int(longest[start]))  # the trainer names an empty pair
            window = longest[start : start + most]
            cost = np.maximum.accumulate(window) * np.arange(1, len(window) + 1, dtype=np.int64)
            cuts.append(start + int(np.searchsorted(cost, budget, side="right")))
            start = cuts[-1]
        return cuts[:-1]

    def __len__(self) -> int:
        """Number of batches of an epoch."""
        return len(self._cuts) + 1

    def epoch(self, epoch: int) -> list[Int64[np.ndarray, " B"]]:
        """Return the batches of an epoch, counted from 0, each as row numbers of its pairs."""
        if epoch < 0:
            raise ValueError(f"epoch must be at least 0, got {epoch}")
        random = np.random.default_rng([self.seed, epoch])
        draw, rows = random.random(len(self._rows)), np.empty_like(self._rows)
        # Many small sorts take a tenth of the time of one large sort.
        for start, end in pairwise(self._runs):
            order = np.argsort(draw[start:end])
            rows[start:end] = self._rows[start:end][order]
        batches = np.split(rows, self._cuts)
        return [batches[i] for i in random.permutation(len(batches))]

    def batch(self, indices: Int64[np.ndarray, " B"]) -> Batch:
        """Make the batch of the pairs with these row numbers, on the CPU."""
        pairs = self.pairs
        source = pairs.source.padded(indices, pairs.pad_id)
        labels = pairs.target.padded(indices, pairs.pad_id)
        # The decoder sees <bos> and the preceding labels. <eos> is never an input.
        lengths = pairs.target.lengths(indices)
        real = np.arange(labels.shape[1]) < lengths[:, None]
        target_input = np.full_like(labels, pairs.bos_id)
        target_input[:, 1:] = np.where(real[:, 1:], labels[:, :-1], pairs.pad_id)
        return Batch(
            torch.from_numpy(source),
            torch.from_numpy(target_input),
            torch.from_numpy(labels),
            int(pairs.source.lengths(indices).sum()),
            int(lengths.sum()),
            torch.from_numpy(np.flatnonzero(real)),
        )


def padding_waste(batches: Iterable[Batch]) -> float:
    """Return the fraction of all token positions that are padding; ValueError without batches."""
    real = positions = 0
    for batch in batches:
        real += batch.num_source_tokens + batch.num_target_tokens
        positions += batch.source.numel() + batch.labels.numel()
    if not positions:
        raise ValueError("batches must hold at least one batch, got none")
    return 1 - real / positions
