"""The batches of each step, epoch after epoch, shared out among the processes.

Paper: section 5.1
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import torch

from transformer.data.batching import Batch, TokenBatches


class StepBatches(NamedTuple):
    """This process's part of one step, and where the next step begins.

    Args:
        batches: of this process.
        epoch: of the next step's first batch.
        position: batches of that epoch, of all processes, that are used by then.
        target_tokens: real labels of the whole step, those of the other processes included.

    Paper: section 5.1
    """

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
    """Yield, for ever, this process's batches of one step and where the next step begins.

    Processes take turns in the one plan that all of them know, so one process that accumulates
    twice sees what two processes see together, and none has to ask another how many tokens that
    one has. A step may reach into the next epoch.

    Args:
        batches: plans the epochs.
        accumulate: batches of a step for each process.
        rank: number of this process, from 0.
        processes: how many there are.
        epoch: where to begin.
        position: batches of that epoch, of all processes, that earlier steps have used.

    Returns:
        An iterator over the steps.

    Paper: section 5.1
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
    """Copy a batch to a device without waiting until it is there.

    A GPU fetches it by itself, but only from memory that stays where it is: hence a copy to such
    memory first, which PyTorch keeps for the batches to come.

    Args:
        batch: on the CPU.
        device: where to.
    """
    if device.type == "cuda":
        fixed: dict[str, Any] = {
            name: value.pin_memory()
            for name, value in vars(batch).items()
            if torch.is_tensor(value)
        }
        batch = replace(batch, **fixed)
    return batch.to(device, non_blocking=True)
