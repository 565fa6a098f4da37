"""Models trained together learn what each learns alone; the record is whole."""

import numpy as np
import torch

from transformer.recipes.record import read_record
from transformer_book.studies.heads.lookup_study import (
    HEADS,
    LONGER,
    RATES,
    RECORD,
    SEEDS,
    SETTINGS,
    STEPS,
    TASK,
    Setting,
    best,
    found,
    learn,
    weight_on_slots,
)
from transformer_book.studies.heads.lookups import lookup_accuracy


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


def test_weights_on_slots_are_shares():
    weights = weight_on_slots(Setting(2, steps=1, rate=0.01).model(1), size=50)
    assert weights.shape == (2, TASK.slots)
    assert (weights > 0).all() and (weights.sum(dim=1) < 1).all()


def test_the_record_has_every_run_and_equal_sizes():
    runs = read_record(RECORD)["runs"]
    assert len(runs) == len(SETTINGS)
    for setting in SETTINGS:
        right = found(runs, setting)
        assert right.shape == (len(SEEDS),) and ((right >= 0) & (right <= 1)).all()
    for hidden in (0, SETTINGS[0].hidden):
        size = sum(p.numel() for p in Setting(4, 1, 0.01, hidden).model(1).parameters())
        assert {run["parameters"] for run in runs if run["hidden"] == hidden} == {size}


def test_a_recorded_run_is_repeated():
    setting = SETTINGS[2]
    (model,) = learn(setting, SEEDS[:1])
    recorded = found(read_record(RECORD)["runs"], setting)[0]
    assert np.isclose(lookup_accuracy(model), recorded, atol=0.1)


def test_the_record_says_what_chapter_5_says():
    runs = read_record(RECORD)["runs"]
    linear = {n: found(runs, best(runs, n, STEPS[1], hidden=0)) for n in HEADS}
    short, middle, long = ({n: found(runs, best(runs, n, steps)) for n in HEADS} for steps in STEPS)
    guess = {n: (n + (4 - n) / 8) / 4 for n in range(1, 5)}
    assert all(abs(linear[n].mean() - guess[n]) < 0.05 for n in (1, 2))
    assert (linear[4] > 0.99).sum() == 9 and linear[4].argmin() == 0
    assert 0.775 < linear[4][0] < 0.785
    assert short[4].mean() > short[1].mean() + 0.05
    assert min(middle[4].min(), middle[8].min()) > 0.985 and middle[16].mean() < 0.7
    assert middle[1].mean() < 0.65 and 0.9 < long[1].mean() < 0.93 and long[2].min() > 0.97
    assert min(long[n].min() for n in (4, 8, 16)) > 0.99
    longer = found(runs, best(runs, 1, LONGER))
    assert longer.min() > 0.96 and longer.max() < 0.97
    assert (found(runs, Setting(1, LONGER, 0.005)) <= 0.81).sum() == 9
    assert best(runs, 4, STEPS[1]).rate == 0.01 == 2 * best(runs, 1, STEPS[2]).rate
    alone, several = (np.array([found(runs, Setting(n, STEPS[2], rate)) for rate in RATES])
                      for n in (1, 4))  # fmt: skip
    assert (np.abs(alone[3] - guess[2]) < 0.03).sum() == 8
    assert (np.abs(alone[3] - guess[3]) < 0.03).sum() == 2
    assert alone[2].min() > alone[3].max() - 0.01 and several[:4].mean(axis=1).min() > 0.995
    served = {
        run["hidden"]: [np.argmax(weight, axis=1) + 1 for weight in run["weight_on_slots"]]
        for run in runs
        if (run["heads"], run["steps"], run["rate"]) == (4, STEPS[1], 0.01)
    }
    for hidden, exception in ((0, 0), (128, 1)):
        own = [len(set(roles)) == 4 for roles in served[hidden]]
        assert [seed for seed, each in enumerate(own) if not each] == [exception]
    assert 4 not in served[0][0] and 0.985 < middle[4][1] < 0.995
