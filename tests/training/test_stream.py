"""Which batches a step sees, in which process, and where the next one begins."""

from itertools import islice

import pytest
from tiny_training import make_pairs

from transformer.data.batching import TokenBatches
from transformer.training.stream import step_batches


@pytest.fixture(scope="module")
def batches():
    return TokenBatches(make_pairs(), 40, seed=3)


def labels(group):
    return [batch.labels.tolist() for batch in group]


def in_order(batches, epochs=3):
    plans = (batches.epoch(epoch) for epoch in range(epochs))
    return [batches.batch(rows).labels.tolist() for plan in plans for rows in plan]


@pytest.mark.parametrize("accumulate", [1, 2, 4])
def test_steps_follow_the_plan_from_epoch_to_epoch(batches, accumulate):
    steps = 2 * len(batches) // accumulate
    seen = [labels(group) for group, *_ in islice(step_batches(batches, accumulate), steps)]
    assert all(len(group) == accumulate for group in seen)
    assert sum(seen, []) == in_order(batches)[: steps * accumulate]


def test_it_continues_where_it_stopped(batches):
    straight = list(islice(step_batches(batches, 2), 12))
    for k in range(11):
        _, epoch, position, _ = straight[k]
        group, *place = next(step_batches(batches, 2, epoch=epoch, position=position))
        assert labels(group) == labels(straight[k + 1][0]) and place == list(straight[k + 1][1:])


@pytest.mark.parametrize("processes", [1, 3])
def test_each_process_counts_the_tokens_of_all_processes(batches, processes):
    shares = [step_batches(batches, 2, rank, processes) for rank in range(processes)]
    for _ in range(3 * len(batches)):
        steps = [next(share) for share in shares]
        real = sum(int((b.labels != 0).sum()) for step in steps for b in step.batches)
        assert {step.target_tokens for step in steps} == {real}


@pytest.mark.parametrize("processes", [2, 3])
def test_processes_share_what_one_would_accumulate(batches, processes):
    one = islice(step_batches(batches, 2 * processes), 6)
    many = zip(
        *(step_batches(batches, 2, rank, processes) for rank in range(processes)), strict=True
    )
    for (group, *place), shares in zip(one, many, strict=False):
        together = [batch for turn in zip(*(s[0] for s in shares), strict=True) for batch in turn]
        assert labels(together) == labels(group)
        assert all(list(share[1:]) == place for share in shares)
