"""The task of several lookups: right answers, and what a model learns of it."""

import torch

from transformer_book.studies.heads.lookups import (
    LookupModel,
    Lookups,
    right_answers,
    train_lookups,
)

SMALL = Lookups(3, entries=6, keys=9, values=5)


def test_a_batch_holds_the_right_answers_and_follows_its_seed():
    (asked, table, right), again = SMALL.batch(50, seed=0), SMALL.batch(50, seed=0)
    assert asked.shape == right.shape == (50, 3) and table.shape == (50, 6, 2)
    for keys, entries, values in zip(asked.tolist(), table.tolist(), right.tolist(), strict=True):
        assert len({key for key, _ in entries}) == 6 and len(set(keys)) == 3
        assert [dict(entries)[key] for key in keys] == values
    assert table.min() == 0 and table[..., 0].max() == 8 and table[..., 1].max() == 4
    assert torch.equal(table, again[1]) and not torch.equal(table, SMALL.batch(50, seed=1)[1])


def test_a_single_lookup_is_learned():
    torch.manual_seed(0)
    model = LookupModel(Lookups(1, entries=3, keys=4, values=2), 1, 16)
    train_lookups(model, 200, 32, seed=0, rate=0.02)
    assert not model.training and right_answers(model, 200) > 0.95
