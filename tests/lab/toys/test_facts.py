"""Facts are fixed and follow from no rule; the attention-only model has silent feed-forwards."""

import numpy as np
import torch

from transformer.lab.toys.facts import AttentionOnlyTransformer, facts_task
from transformer.lab.toys.toy import FIRST_SYMBOL, toy_config
from transformer.model.transformer import Transformer


def answers(seed=0, symbols=12):
    task = facts_task(symbols, seed)
    ids = range(FIRST_SYMBOL, FIRST_SYMBOL + symbols)
    return np.array([[task.rule(np.array([a, b])).item() for b in ids] for a in ids])


def test_answers_are_fixed_symbols_that_depend_on_both():
    table = answers()
    assert (table == answers()).all() and (table != answers(seed=1)).any()
    assert table.min() >= FIRST_SYMBOL and table.max() < FIRST_SYMBOL + 12
    assert all(len(set(line)) > 3 for line in [*table, *table.T]) and (table != table.T).any()
    batch = facts_task(12).batch(50, seed=0)
    assert batch.source.shape == (50, 3) and batch.labels.shape == (50, 2)
    first, second = (batch.source[:, :2] - FIRST_SYMBOL).T
    assert (batch.labels[:, 0].numpy() == table[first, second]).all()


def test_without_feed_forward_it_is_a_transformer_whose_feed_forward_is_zero():
    config = toy_config(facts_task(5), d_model=16, num_layers=2)
    models = []
    for kind in (Transformer, AttentionOnlyTransformer):
        torch.manual_seed(0)
        models.append(kind(config))
    usual, bare = models
    weights = {n: w for n, w in usual.state_dict().items() if ".feed_forward." not in n}
    assert bare.state_dict().keys() == weights.keys()
    assert all(torch.equal(weight, weights[name]) for name, weight in bare.state_dict().items())
    for layer in [*usual.encoder, *usual.decoder]:
        for parameter in layer.feed_forward.parameters():
            torch.nn.init.zeros_(parameter)
    batch = facts_task(5).batch(4, seed=0)
    torch.testing.assert_close(
        bare(batch.source, batch.target_input), usual(batch.source, batch.target_input)
    )
