"""Batches by token budget (section 5.1): sentences of like length share a batch.

The cost of a batch is the size of its padded matrices, not the number of its sentences. So a
batch holds as many pairs as fit a budget of token positions, and pairs are sorted by length
first, which leaves little padding.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from jaxtyping import Int, Int32, Int64
from torch import Tensor

from transformer.data.parallel import Split
from transformer.data.tokenizer import Tokenizer

# Texts that are encoded at once: enough for all threads, few enough to keep little memory.
_CHUNK = 50_000


@dataclass(frozen=True)
class Sentences:
    """Token ids of many sentences in one flat array.

    Millions of small Python lists would take ten times the memory.

    Args:
        ids: All sentences after one another, each with its ``<eos>``.
        offsets: Where each sentence starts, and at last the end: one more than sentences.

    Paper: not in the paper; storage.
    """

    ids: Int32[np.ndarray, " tokens"]
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


def encode_pairs(tokenizer: Tokenizer, split: Split) -> EncodedPairs:
    """Encode a split; every sentence ends with ``<eos>``.

    Args:
        tokenizer: The joint tokenizer.
        split: Pairs of text.

    Returns:
        The pairs as ids, in the same order.

    Paper: section 5.1
    """
    return EncodedPairs(
        _encode(tokenizer, split.source),
        _encode(tokenizer, split.target),
        tokenizer.pad_id,
        tokenizer.bos_id,
    )


def _encode(tokenizer: Tokenizer, texts: list[str]) -> Sentences:
    end = [tokenizer.eos_id]
    ids, lengths = [np.empty(0, np.int32)], [0]
    for start in range(0, len(texts), _CHUNK):
        encoded = tokenizer.encode_batch(texts[start : start + _CHUNK])
        lengths += [len(sentence) + 1 for sentence in encoded]
        flat = chain.from_iterable(chain(sentence, end) for sentence in encoded)
        ids.append(np.fromiter(flat, np.int32))
    return Sentences(np.concatenate(ids), np.cumsum(lengths, dtype=np.int64))


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
        moved = (
            tensor.to(device, non_blocking=non_blocking)
            for tensor in (self.source, self.target_input, self.labels)
        )
        return Batch(*moved, self.num_source_tokens, self.num_target_tokens)


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
        source, target = pairs.source.lengths(), pairs.target.lengths()
        longest = np.maximum(source, target)
        limit = batch_tokens if max_length is None else min(batch_tokens, max_length)
        rows = np.flatnonzero(longest <= limit)
        #: Pairs longer than ``max_length`` or ``batch_tokens``, which no batch holds.
        self.num_dropped = len(pairs) - len(rows)
        if not len(rows):
            raise ValueError(
                f"no pair to batch: all {len(pairs)} pairs are longer than {limit} tokens"
            )
        # From one target length to the next the source lengths rise and fall in turn, so that a
        # batch that spans both does not pair the longest sources with the shortest.
        snake = np.where(target % 2 == 0, source, -source)
        self._rows = rows[np.lexsort((snake[rows], target[rows]))]
        self._cuts = self._cut(longest[self._rows])
        cell = np.stack((target[self._rows], source[self._rows]))
        # Number of the run of equal (target, source) lengths that each sorted row belongs to.
        self._cell = np.cumsum(np.append(0, np.any(np.diff(cell, axis=1) != 0, axis=0)))

    def _cut(self, longest: Int64[np.ndarray, " rows"]) -> list[int]:
        """Starts of the batches after the first: as many rows in each as the budget allows."""
        cuts, start = [], 0
        while True:
            window = longest[start : start + self.batch_tokens // int(longest[start])]
            cost = np.maximum.accumulate(window) * np.arange(1, len(window) + 1)
            start += int(np.searchsorted(cost, self.batch_tokens, side="right"))
            if start >= len(longest):
                return cuts
            cuts.append(start)

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
        order = np.lexsort((random.random(len(self._rows)), self._cell))
        batches = np.split(self._rows[order], self._cuts)
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
