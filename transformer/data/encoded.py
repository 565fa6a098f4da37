"""Sentence pairs as token ids, millions of them in a few flat arrays.

Paper: section 5.1
"""

import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import NamedTuple

import numpy as np
from jaxtyping import Int32, Int64, UInt16

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
    """

    ids: Int32[np.ndarray, " tokens"] | UInt16[np.ndarray, " tokens"]
    offsets: Int64[np.ndarray, " rows_plus_1"]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def lengths(
        self, rows: Int64[np.ndarray, " B"] | slice = slice(None)
    ) -> Int64[np.ndarray, " B"]:
        """Number of ids, ``<eos>`` included, of all sentences or of some."""
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
        """CRC-32 of all ids, source before target; equal for equal text and tokenizer."""
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
