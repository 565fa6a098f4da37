"""Batches by token budget (section 5.1): sentences of like length share a batch.

The cost of a batch is the size of its padded matrices, not the number of its sentences. So a
batch holds as many pairs as fit a budget of token positions, and pairs are sorted by length
first, which leaves little padding.
"""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int, Int32, Int64, UInt16
from torch import Tensor

from transformer.data.parallel import Split
from transformer.data.tokenizer import TokenizerLike

# Pairs that are encoded at once: enough for all threads, few enough to keep little memory.
_CHUNK = 10_000


@dataclass(frozen=True)
class Sentences:
    """Token ids of many sentences in one flat array.

    Millions of small Python lists would take ten times the memory.

    Args:
        ids: All sentences after one another, each with its ``<eos>``. The array may be a file that
            is mapped into memory.
        offsets: Where each sentence starts, and at last the end: one more than sentences.

    Paper: not in the paper; storage.
    """

    ids: Int32[np.ndarray, " tokens"] | UInt16[np.ndarray, " tokens"]
    offsets: Int64[np.ndarray, " rows_plus_1"]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def lengths(
        self, rows: Int64[np.ndarray, " B"] | slice = slice(None)
    ) -> Int64[np.ndarray, " B"]:
        """Number of ids, ``<eos>`` included, of all sentences or of some.

        Paper: not in the paper; storage.
        """
        return self.offsets[1:][rows] - self.offsets[:-1][rows]

    def __getitem__(self, row: int) -> list[int]:
        row = range(len(self))[row]
        return self.ids[self.offsets[row] : self.offsets[row + 1]].tolist()

    def padded(self, rows: Int64[np.ndarray, " B"], pad_id: int) -> Int64[np.ndarray, "B T"]:
        """Some sentences as one matrix, padded on the right to the longest of them.

        Args:
            rows: Which sentences.
            pad_id: What fills the rest.

        Returns:
            The matrix.

        Paper: not in the paper; storage.
        """
        lengths = self.lengths(rows)
        position = np.arange(lengths.max())
        real = position < lengths[:, None]
        matrix = np.full(real.shape, pad_id, dtype=np.int64)
        matrix[real] = self.ids[(self.offsets[rows, None] + position)[real]]
        return matrix


@dataclass(frozen=True)
class EncodedPairs:
    """A split as token ids.

    Args:
        source: Source sentences, each ending with ``<eos>``.
        target: Target sentences, each ending with ``<eos>``.
        pad_id: Id that pads batches.
        bos_id: Id that starts the decoder's input.

    Paper: section 5.1
    """

    source: Sentences
    target: Sentences
    pad_id: int = 0
    bos_id: int = 1

    def __len__(self) -> int:
        return len(self.source)

    @cached_property
    def checksum(self) -> int:
        """CRC-32 of all ids, source before target: equal for equal text and tokenizer.

        Paper: not in the paper; a run must go on with the text that it began with.
        """
        return ids_checksum([self.source.ids, self.target.ids])

    @cached_property
    def by_length(self) -> "ByLength":
        """The pairs in order of their lengths, as batches want them.

        Paper: section 5.1 (pairs of "approximate sequence length" share a batch)
        """
        source, target = self.source.lengths(), self.target.lengths()
        # Millions of small numbers are sorted several times as fast as those of 64 bits.
        longest = max(source.max(initial=0), target.max(initial=0))
        small = np.int16 if longest < 1 << 15 else np.int64
        source, target = source.astype(small), target.astype(small)
        order = np.argsort(np.where(target % 2 == 0, source, -source), kind="stable")
        order = order[np.argsort(target[order], kind="stable")]
        return ByLength(order, source[order].astype(np.int32), target[order].astype(np.int32))


class ByLength(NamedTuple):
    """Pairs sorted by target length, then source length; in the order of the text where equal.

    From one target length to the next the source lengths rise and fall in turn, so that a batch
    that spans both does not pair the longest sources with the shortest.

    Args:
        rows: Numbers of the pairs.
        source: Their source lengths.
        target: Their target lengths.

    Paper: section 5.1
    """

    rows: Int64[np.ndarray, " pairs"]
    source: Int32[np.ndarray, " pairs"]
    target: Int32[np.ndarray, " pairs"]


def ids_checksum(
    arrays: Iterable[Int32[np.ndarray, " _"] | UInt16[np.ndarray, " _"]], start: int = 0
) -> int:
    """CRC-32 of token ids, the same whatever their type.

    Args:
        arrays: Ids, one after the other.
        start: Checksum of the ids before them.

    Paper: not in the paper; storage.
    """
    for ids in arrays:
        start = zlib.crc32(ids.astype(np.int32, copy=False).data, start)
    return start


def encode_pairs(tokenizer: TokenizerLike, split: Split) -> EncodedPairs:
    """Encode a split; every sentence ends with ``<eos>``.

    The ids are held in memory. For text that is larger, see
    :func:`~transformer.data.token_cache.cached_pairs`.

    Args:
        tokenizer: The joint tokenizer.
        split: Pairs of text.

    Returns:
        The pairs as ids, in the same order.

    Paper: section 5.1
    """
    nothing = np.empty(0, np.int32), np.zeros(1, np.int64)
    chunks = [(nothing, nothing), *encoded_chunks(tokenizer, split)]
    source, target = (
        Sentences(*map(np.concatenate, zip(*side, strict=True)))
        for side in zip(*chunks, strict=True)
    )
    return EncodedPairs(source, target, tokenizer.pad_id, tokenizer.bos_id)


# Ids of sentences after one another, and where each of them ends.
Ends = tuple[Int32[np.ndarray, " tokens"], Int64[np.ndarray, " rows"]]


def encoded_chunks(tokenizer: TokenizerLike, split: Split) -> Iterator[tuple[Ends, Ends]]:
    """Encode a split a few pairs at a time, as :func:`encode_pairs` does all of them.

    Args:
        tokenizer: The joint tokenizer.
        split: Pairs of text.

    Returns:
        An iterator over both sides of a chunk: the ids, and where each sentence ends, counted from
        the first id of the split.

    Paper: section 5.1
    """
    pairs, totals = iter(split), [0, 0]
    while chunk := list(islice(pairs, _CHUNK)):
        sides = []
        for i, texts in enumerate(zip(*chunk, strict=True)):
            encoded = tokenizer.encode_batch(texts)
            ends = totals[i] + np.cumsum([len(row) + 1 for row in encoded], dtype=np.int64)
            totals[i] = int(ends[-1])
            end = [tokenizer.eos_id]
            flat = chain.from_iterable(chain(row, end) for row in encoded)
            sides.append((np.fromiter(flat, np.int32), ends))
        yield sides[0], sides[1]


@dataclass(frozen=True)
class Batch:
    """One step's input, padded on the right.

    Args:
        source: Source ids with ``<eos>``, shape (B, S).
        target_input: Target ids behind ``<bos>``, shape (B, T): what the decoder may see.
        labels: Target ids with ``<eos>``, shape (B, T): what it should say at each position.
        num_source_tokens: Source positions that are not padding.
        num_target_tokens: Labels that are not padding.

    Paper: section 3.1
    """

    source: Int[Tensor, "B S"]
    target_input: Int[Tensor, "B T"]
    labels: Int[Tensor, "B T"]
    num_source_tokens: int
    num_target_tokens: int

    def __len__(self) -> int:
        return self.source.shape[0]

    def to(self, device: torch.device | str, non_blocking: bool = False) -> "Batch":
        """The same batch on another device.

        Args:
            device: Where to.
            non_blocking: Copy asynchronously where the memory allows it.

        Returns:
            A batch whose tensors are on ``device``.

        Paper: not in the paper; devices.
        """
        source, target_input, labels = (
            tensor.to(device, non_blocking=non_blocking)
            for tensor in (self.source, self.target_input, self.labels)
        )
        return replace(self, source=source, target_input=target_input, labels=labels)


class TokenBatches:
    """Plans batches of at most ``batch_tokens`` token positions, anew for each epoch.

    For each batch, rows x longest row is at most ``batch_tokens`` on the source side and on the
    target side, ``<eos>`` and padding included. Pairs are sorted by target length, then source
    length; pairs of equal lengths fall into a random order, so the company of a sentence changes
    from epoch to epoch. The batches of an epoch come in random order. The number of batches is
    the same in every epoch.

    A run that stops in mid-epoch goes on with ``epoch(e)[k:]``: the plan depends on nothing but
    the pairs, ``batch_tokens``, ``max_length``, ``seed`` and ``e``.

    Args:
        pairs: Encoded pairs.
        batch_tokens: Budget of each side in token positions, at least 1.
        seed: At least 0.
        max_length: Longest side that is kept, in tokens with ``<eos>``; None for no limit but
            the budget. Longer pairs are dropped and counted in ``num_dropped``.

    Raises:
        ValueError: If a number is out of range, or no pair is left.

    Paper: section 5.1
    """

    def __init__(
        self,
        pairs: EncodedPairs,
        batch_tokens: int,
        seed: int = 0,
        max_length: int | None = None,
    ) -> None:
        for name, value, least in (
            ("batch_tokens", batch_tokens, 1),
            ("seed", seed, 0),
            ("max_length", max_length, 1),
        ):
            if value is not None and value < least:
                raise ValueError(f"{name} must be at least {least}, got {value}")
        self.pairs = pairs
        self.batch_tokens = batch_tokens
        self.seed = seed
        self.max_length = max_length
        rows, source, target = pairs.by_length
        longest = np.maximum(source, target)
        limit = batch_tokens if max_length is None else min(batch_tokens, max_length)
        kept = longest <= limit
        #: Pairs longer than ``max_length`` or ``batch_tokens``, which no batch holds.
        self.num_dropped = int(len(kept) - kept.sum())
        if self.num_dropped == len(kept):
            raise ValueError(
                f"no pair to batch: all {len(pairs)} pairs are longer than {limit} tokens"
            )
        if self.num_dropped:
            rows, source, target, longest = rows[kept], source[kept], target[kept], longest[kept]
        self._rows, self._cuts = rows, self._cut(longest)
        # Where the (target, source) lengths of the sorted rows change, and both ends.
        changes = (source[1:] != source[:-1]) | (target[1:] != target[:-1])
        self._runs = [0, *(np.flatnonzero(changes) + 1).tolist(), len(rows)]

    def _cut(self, longest: Int32[np.ndarray, " rows"]) -> list[int]:
        """Starts of the batches after the first: as many rows in each as the budget allows."""
        cuts: list[int] = []
        start, budget = 0, self.batch_tokens
        # Millions of rows have a few hundred lengths: where all rows are of one, count.
        ends = np.append(np.flatnonzero(np.diff(longest)) + 1, len(longest))
        while start < len(longest):
            most = budget // int(longest[start])
            alike = int(ends[np.searchsorted(ends, start, side="right")]) - start
            if alike >= most:
                cuts.extend(range(start + most, start + alike + 1, most))
            else:
                window = longest[start : start + most]
                cost = np.maximum.accumulate(window) * np.arange(1, len(window) + 1, dtype=np.int64)
                cuts.append(start + int(np.searchsorted(cost, budget, side="right")))
            start = cuts[-1]
        return cuts[:-1]

    def __len__(self) -> int:
        """Number of batches of an epoch."""
        return len(self._cuts) + 1

    def epoch(self, epoch: int) -> list[Int64[np.ndarray, " B"]]:
        """Plan of one epoch: for each batch the row numbers of its pairs.

        Args:
            epoch: Number of the epoch, from 0.

        Returns:
            The batches in the order to train on; every pair that was not dropped is in one.

        Raises:
            ValueError: If ``epoch`` is negative.

        Paper: section 5.1
        """
        if epoch < 0:
            raise ValueError(f"epoch must be at least 0, got {epoch}")
        random = np.random.default_rng([self.seed, epoch])
        draw, rows = random.random(len(self._rows)), np.empty_like(self._rows)
        # Run by run: many small sorts take a fifth of the time of one large one.
        for start, end in pairwise(self._runs):
            order = np.argsort(draw[start:end], kind="stable")
            rows[start:end] = self._rows[start:end][order]
        batches = np.split(rows, self._cuts)
        return [batches[i] for i in random.permutation(len(batches))]

    def batch(self, indices: Int64[np.ndarray, " B"]) -> Batch:
        """Make the batch of some pairs.

        Args:
            indices: Row numbers, as :meth:`epoch` gives them; at least one.

        Returns:
            The padded tensors, on the CPU.

        Paper: section 3.1
        """
        pairs = self.pairs
        source = pairs.source.padded(indices, pairs.pad_id)
        labels = pairs.target.padded(indices, pairs.pad_id)
        # The decoder sees <bos> and the labels before its own. Where a row's labels have ended,
        # its input has too: the <eos> itself is never an input.
        lengths = pairs.target.lengths(indices)
        shown = np.arange(1, labels.shape[1]) < lengths[:, None]
        target_input = np.full_like(labels, pairs.bos_id)
        target_input[:, 1:] = np.where(shown, labels[:, :-1], pairs.pad_id)
        return Batch(
            torch.from_numpy(source),
            torch.from_numpy(target_input),
            torch.from_numpy(labels),
            int(pairs.source.lengths(indices).sum()),
            int(lengths.sum()),
        )


def padding_waste(batches: Iterable[Batch]) -> float:
    """Share of the token positions of both sides that are padding.

    Args:
        batches: The batches, such as those of an epoch.

    Returns:
        A number in [0, 1).

    Raises:
        ValueError: If there are no batches.

    Paper: not in the paper; it groups pairs "by approximate sequence length" for this reason.
    """
    real = positions = 0
    for batch in batches:
        real += batch.num_source_tokens + batch.num_target_tokens
        positions += batch.source.numel() + batch.labels.numel()
    if not positions:
        raise ValueError("batches must hold at least one batch, got none")
    return 1 - real / positions
