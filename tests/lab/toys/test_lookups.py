"""The task of several look-ups: right answers, one query vector, equal parameters."""

import pytest
import torch

from transformer.lab.toys.lookups import LookupModel, Lookups, lookup_accuracy, train_lookups

TASK = Lookups(3, entries=6, keys=9, values=5)


def test_a_batch_holds_the_right_answers_and_follows_its_seed():
    (asked, table, right), again = TASK.batch(50, seed=0), TASK.batch(50, seed=0)
    assert asked.shape == right.shape == (50, 3) and table.shape == (50, 6, 2)
    for keys, entries, values in zip(asked.tolist(), table.tolist(), right.tolist(), strict=True):
        assert len({key for key, _ in entries}) == 6 and len(set(keys)) == 3
        assert [dict(entries)[key] for key in keys] == values
    assert table.min() == 0 and table[..., 0].max() == 8 and table[..., 1].max() == 4
    assert torch.equal(table, again[1]) and not torch.equal(table, TASK.batch(50, seed=1)[1])


def test_the_number_of_heads_changes_no_count():
    counts = {
        sum(p.numel() for p in LookupModel(TASK, heads, d_model=16).parameters())
        for heads in (1, 2, 4, 8, 16)
    }
    assert len(counts) == 1
    assert LookupModel(TASK, 4, d_model=16, d_k=1).attention.d_k == 1


def test_slots_are_told_apart_and_entries_are_a_set():
    torch.manual_seed(0)
    model = LookupModel(TASK, 2, d_model=16)
    asked, table, _ = TASK.batch(4, seed=0)
    logits = model(asked, table)
    assert logits.shape == (4, 3, 5)
    torch.testing.assert_close(model(asked, table.flip(1)), logits)
    assert not torch.allclose(model(asked.flip(1), table), logits, atol=1e-3)


@pytest.mark.parametrize("heads, low, high", [(1, 0.0, 0.75), (2, 0.85, 1.0)])
def test_two_slots_need_two_heads(heads, low, high):
    task = Lookups(2, entries=4, keys=6, values=4)
    torch.manual_seed(0)
    model = LookupModel(task, heads, d_model=16)
    train_lookups(model, steps=200, batch_size=64, seed=1, rate=1e-2)
    assert low <= lookup_accuracy(model, size=500) <= high
