"""Batches by token budget (section 5.1): sentences of like length share a batch.

The cost of a batch is the size of its padded matrices, not the number of its sentences. So a
batch holds as many pairs as fit a budget of token positions, and pairs are sorted by length
first, which leaves little padding.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from jaxtyping import Int, Int32, Int64
from torch import Tensor

from transformer.data.encoded import EncodedPairs, Sentences, encode_pairs

__all__ = ["Batch", "EncodedPairs", "Sentences", "TokenBatches", "encode_pairs", "padding_waste"]


@dataclass(frozen=True)
class Batch:
    """One step's input, padded on the right.

    Args:
        source: Source ids with ``<eos>``, shape (B, S).
        target_input: Target ids behind ``<bos>``, shape (B, T): what the decoder may see.
        labels: Target ids with ``<eos>``, shape (B, T): what it should say at each position.
        num_source_tokens: Source positions that are not padding.
        num_target_tokens: Labels that are not padding.
        rows: Places of these labels in ``labels.flatten()``, shape (N,). The loss looks for them if
            it gets None, but then a GPU has to wait for the answer.

    Paper: section 3.1
    """

    source: Int[Tensor, "B S"]
    target_input: Int[Tensor, "B T"]
    labels: Int[Tensor, "B T"]
    num_source_tokens: int
    num_target_tokens: int
    rows: Int[Tensor, "N"] | None = None

    def __len__(self) -> int:
        return self.source.shape[0]

    def to(self, device: torch.device | str, non_blocking: bool = False) -> "Batch":
        """The same batch on another device.

        Args:
            device: Where to.
            non_blocking: Copy asynchronously where the memory allows it.

        Returns:
            A batch whose tensors are on ``device``.
        """
        moved: dict[str, Any] = {
            name: tensor.to(device, non_blocking=non_blocking)
            for name, tensor in vars(self).items()
            if isinstance(tensor, Tensor)
        }
        return replace(self, **moved)


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
        # Run by run: many small sorts take a tenth of the time of one large one.
        for start, end in pairwise(self._runs):
            order = np.argsort(draw[start:end])
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
