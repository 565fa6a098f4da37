"""The task of several lookups: right answers, and training side by side."""

import torch

from transformer_book.studies.heads.lookups import Lookups
from transformer_book.studies.heads.study import Setting, learn

SMALL = Lookups(3, entries=6, keys=9, values=5)


def test_a_batch_holds_the_right_answers_and_follows_its_seed():
    (asked, table, right), again = SMALL.batch(50, seed=0), SMALL.batch(50, seed=0)
    assert asked.shape == right.shape == (50, 3) and table.shape == (50, 6, 2)
    for keys, entries, values in zip(asked.tolist(), table.tolist(), right.tolist(), strict=True):
        assert len({key for key, _ in entries}) == 6 and len(set(keys)) == 3
        assert [dict(entries)[key] for key in keys] == values
    assert table.min() == 0 and table[..., 0].max() == 8 and table[..., 1].max() == 4
    assert torch.equal(table, again[1]) and not torch.equal(table, SMALL.batch(50, seed=1)[1])


def test_models_trained_together_are_those_trained_alone():
    setting = Setting(2, steps=15, rate=0.01, hidden=16)
    together, (alone,) = learn(setting, (1, 2, 3)), learn(setting, (2,))
    before = setting.model(2)
    assert any((p != q).any() for p, q in zip(alone.parameters(), before.parameters(), strict=True))
    for one, other in zip(together[1].parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
    first, second = (model.key.weight for model in together[:2])
    assert not torch.allclose(first, second, atol=0.1)
    assert not any(model.training for model in together)
