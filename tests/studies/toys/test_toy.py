"""A batch of a toy task: what its rows hold, read one by one."""

import pytest
import torch

from transformer_book.studies.toy import BOS, EOS, FIRST_SYMBOL, PAD, REVERSE, ToyTask

LISTS = ToyTask(lambda symbols: [int(symbol) for symbol in symbols if symbol > 8], symbols=20)


@pytest.mark.parametrize("task", [REVERSE, LISTS])
@pytest.mark.parametrize("length", [None, 1, 7])
def test_each_row_holds_a_source_and_what_the_rule_makes_of_it(task, length):
    batch = task.batch(40, seed=3, length=length)
    lengths = set()
    for row, before, after in zip(batch.source, batch.target_input, batch.labels, strict=True):
        source = row[row != PAD].tolist()
        assert source[-1] == EOS and EOS not in source[:-1]
        assert all(FIRST_SYMBOL <= symbol < task.vocab_size for symbol in source[:-1])
        target = [int(symbol) for symbol in task.rule(torch.tensor(source[:-1]).numpy())]
        padding = [PAD] * (len(after) - len(target) - 1)
        assert after.tolist() == [*target, EOS, *padding]
        assert before.tolist() == [BOS, *target, *padding]
        lengths.add(len(source) - 1)
    assert lengths == ({length} if length else set(range(task.shortest, task.longest + 1)))
    assert batch.num_source_tokens == int((batch.source != PAD).sum())
    assert batch.num_target_tokens == int((batch.labels != PAD).sum())


def test_a_seed_draws_the_same_pairs():
    first, again, other = (REVERSE.batch(8, seed) for seed in (5, 5, 6))
    assert first.source.equal(again.source) and first.labels.equal(again.labels)
    assert not first.source.equal(other.source)
