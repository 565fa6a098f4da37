"""The batches of each step, epoch after epoch, shared out among the processes.

Paper: section 5.1
"""

from collections.abc import Iterator

from transformer.data.batching import Batch, TokenBatches


def step_batches(
    batches: TokenBatches,
    accumulate: int = 1,
    rank: int = 0,
    processes: int = 1,
    epoch: int = 0,
    position: int = 0,
) -> Iterator[tuple[list[Batch], int, int]]:
    """Yield, for ever, this process's batches of one step and where the next step begins.

    Processes take turns in the one plan that all of them know, so one process that accumulates
    twice sees what two processes see together. A step may reach into the next epoch.

    Args:
        batches: plans the epochs.
        accumulate: batches of a step for each process.
        rank: number of this process, from 0.
        processes: how many there are.
        epoch: where to begin.
        position: batches of that epoch, of all processes, that earlier steps have used.

    Returns:
        An iterator over (batches, epoch, position).

    Paper: section 5.1
    """
    plan = batches.epoch(epoch)
    while True:
        group = []
        for turn in range(accumulate * processes):
            if position == len(plan):
                epoch, position = epoch + 1, 0
                plan = batches.epoch(epoch)
            if turn % processes == rank:
                group.append(batches.batch(plan[position]))
            position += 1
        yield group, epoch, position
