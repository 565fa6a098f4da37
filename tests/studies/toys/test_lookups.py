"""The task of several lookups: right answers, one query vector, equal parameters."""

import torch

from transformer_book.studies.heads.lookups import LookupModel, Lookups

TASK = Lookups(3, entries=6, keys=9, values=5)


def test_a_batch_holds_the_right_answers_and_follows_its_seed():
    (asked, table, right), again = TASK.batch(50, seed=0), TASK.batch(50, seed=0)
    assert asked.shape == right.shape == (50, 3) and table.shape == (50, 6, 2)
    for keys, entries, values in zip(asked.tolist(), table.tolist(), right.tolist(), strict=True):
        assert len({key for key, _ in entries}) == 6 and len(set(keys)) == 3
        assert [dict(entries)[key] for key in keys] == values
    assert table.min() == 0 and table[..., 0].max() == 8 and table[..., 1].max() == 4
    assert torch.equal(table, again[1]) and not torch.equal(table, TASK.batch(50, seed=1)[1])


def test_slots_are_told_apart_and_entries_are_a_set():
    torch.manual_seed(0)
    model = LookupModel(TASK, 2, d_model=16)
    asked, table, _ = TASK.batch(4, seed=0)
    logits = model(asked, table)
    assert logits.shape == (4, 3, 5)
    torch.testing.assert_close(model(asked, table.flip(1)), logits)
    assert not torch.allclose(model(asked.flip(1), table), logits, atol=1e-3)
