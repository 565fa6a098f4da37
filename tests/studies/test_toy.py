"""Batches of a toy task, and networks that are trained side by side."""

import pytest
import torch
from torch import nn

from transformer_book.studies.together import Together
from transformer_book.studies.toy import BOS, EOS, FIRST_SYMBOL, PAD, REVERSE, ToyTask
from transformer_book.studies.training_loop import optimise

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


def make_network():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def test_training_together_is_training_alone():
    inputs = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    networks = Together(make_network, (7, 8))
    alone = []
    for seed, given in zip((7, 8), inputs, strict=True):
        torch.manual_seed(seed)
        one = make_network()
        torch.testing.assert_close(networks(inputs)[seed - 7], one(given))
        optimise(one, lambda _, one=one, given=given: one(given).square().mean(), 5, lambda _: 0.01)
        alone.append(one(given))

    def loss(_):
        return networks(inputs).square().mean(dim=(1, 2)).sum()

    optimise(networks, loss, 5, lambda _: 0.01)
    torch.testing.assert_close(networks(inputs), torch.stack(alone))
