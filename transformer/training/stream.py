"""The batches of each step, epoch after epoch, distributed to the processes."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import torch

from transformer.data.batching import Batch, TokenBatches


class StepBatches(NamedTuple):
    """This process's part of one step, and where the next step begins."""

    batches: list[Batch]
    epoch: int
    position: int
    target_tokens: int


def step_batches(
    batches: TokenBatches,
    accumulate: int = 1,
    rank: int = 0,
    processes: int = 1,
    epoch: int = 0,
    position: int = 0,
) -> Iterator[StepBatches]:
    """Yield this process's batches of one step after another, without end.

    All processes follow the same plan and take turns in it. So one process that accumulates twice
    sees the batches of two processes together, and each process can count the tokens of all others
    without communication. A step may reach into the next epoch.

    Args:
        batches: plans the epochs.
        accumulate: batches per step and process.
        rank: number of this process, from 0.
        processes: how many there are.
        epoch: where to begin.
        position: batches of that epoch, of all processes, that earlier steps have used.
    """
    plan = batches.epoch(epoch)
    while True:
        group, tokens = [], 0
        for turn in range(accumulate * processes):
            if position == len(plan):
                epoch, position = epoch + 1, 0
                plan = batches.epoch(epoch)
            rows = plan[position]
            tokens += int(batches.pairs.target.lengths(rows).sum())
            if turn % processes == rank:
                group.append(batches.batch(rows))
            position += 1
        yield StepBatches(group, epoch, position, tokens)


def send(batch: Batch, device: torch.device) -> Batch:
    """Start copying a batch from the CPU to a device, without waiting for the copy.

    A GPU copies asynchronously only from pinned memory, which PyTorch reuses for later batches.
    """
    if device.type == "cuda":
        pinned: dict[str, Any] = {
            name: value.pin_memory()
            for name, value in vars(batch).items()
            if torch.is_tensor(value)
        }
        batch = replace(batch, **pinned)
    return batch.to(device, non_blocking=True)
