"""Facts are fixed and follow from no rule; without its feed-forward layers a model is attention."""

import numpy as np
import pytest
import torch

from transformer.lab.toys.facts import AttentionOnlyTransformer, Silence, facts_task
from transformer.lab.toys.toy import FIRST_SYMBOL, toy_config
from transformer.model.layers import PositionwiseFeedForward
from transformer.model.transformer import Transformer


def answers(seed=0, symbols=5):
    task = facts_task(symbols, seed)
    ids = range(FIRST_SYMBOL, FIRST_SYMBOL + symbols)
    return np.array([[task.rule(np.array([a, b])).item() for b in ids] for a in ids])


def test_facts_stay_the_same_and_seeds_differ():
    assert (answers() == answers()).all() and (answers() != answers(seed=1)).any()


def test_answers_are_symbols_and_depend_on_both():
    table = answers(symbols=12)
    assert table.min() >= FIRST_SYMBOL and table.max() < FIRST_SYMBOL + 12
    # No row and no column of a random table is constant, and the order of a pair counts.
    assert all(len(set(line)) > 3 for line in [*table, *table.T])
    assert (table != table.T).any()


def test_a_batch_holds_pairs_and_one_answer():
    task = facts_task(5)
    batch = task.batch(50, seed=0)
    assert batch.source.shape == (50, 3) and batch.labels.shape == (50, 2)
    table = answers()
    for source, labels in zip(batch.source.tolist(), batch.labels.tolist(), strict=True):
        assert labels[0] == table[source[0] - FIRST_SYMBOL, source[1] - FIRST_SYMBOL]


def test_without_feed_forward_it_is_a_transformer_whose_feed_forward_is_zero():
    config = toy_config(facts_task(5), d_model=16, num_layers=2)
    torch.manual_seed(0)
    usual = Transformer(config)
    torch.manual_seed(0)
    bare = AttentionOnlyTransformer(config)
    assert not any(isinstance(module, PositionwiseFeedForward) for module in bare.modules())
    assert sum(isinstance(module, Silence) for module in bare.modules()) == 4
    weights = {n: w for n, w in usual.state_dict().items() if ".feed_forward." not in n}
    drawn = bare.state_dict()
    assert drawn.keys() == weights.keys()
    assert all(torch.equal(drawn[name], weights[name]) for name in drawn)
    for layer in [*usual.encoder, *usual.decoder]:
        for parameter in layer.feed_forward.parameters():
            torch.nn.init.zeros_(parameter)
    batch = facts_task(5).batch(4, seed=0)
    torch.testing.assert_close(
        bare(batch.source, batch.target_input), usual(batch.source, batch.target_input)
    )


@pytest.mark.parametrize("shape", [(1, 2, 3), (2, 1, 4)])
def test_silence(shape):
    assert torch.equal(Silence()(torch.randn(shape)), torch.zeros(shape))
