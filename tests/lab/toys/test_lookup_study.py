"""Models trained together learn what each learns alone; the record is whole."""

import numpy as np
import torch

from transformer.lab.toys.lookup_study import (
    RECORD,
    SEEDS,
    SETTINGS,
    TASK,
    Setting,
    found,
    learn,
    weight_on_slots,
)
from transformer.lab.toys.lookups import lookup_accuracy
from transformer.recipes.record import read_record


def test_models_trained_together_are_those_trained_alone():
    setting = Setting(2, steps=15, hidden=16)
    together, (alone,) = learn(setting, (1, 2, 3)), learn(setting, (2,))
    before = setting.model(2)
    assert any((p != q).any() for p, q in zip(alone.parameters(), before.parameters(), strict=True))
    for one, other in zip(together[1].parameters(), alone.parameters(), strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4)
    first, second = (model.key.weight for model in together[:2])
    assert not torch.allclose(first, second, atol=0.1)
    assert not any(model.training or model.attention.on_weights for model in together)


def test_weights_on_slots_are_shares():
    weights = weight_on_slots(Setting(2, steps=1).model(1), size=50)
    assert weights.shape == (2, TASK.slots)
    assert (weights > 0).all() and (weights.sum(dim=1) < 1).all()


def test_the_record_has_every_run_and_equal_sizes():
    runs = read_record(RECORD)["runs"]
    assert len(runs) == len(SETTINGS)
    for setting in SETTINGS:
        right = found(runs, setting)
        assert right.shape == (len(SEEDS),) and ((right >= 0) & (right <= 1)).all()
    for hidden in (0, SETTINGS[0].hidden):
        size = sum(p.numel() for p in Setting(4, 1, hidden).model(1).parameters())
        assert {run["parameters"] for run in runs if run["hidden"] == hidden} == {size}


def test_a_recorded_run_is_repeated():
    setting = SETTINGS[2]
    (model,) = learn(setting, SEEDS[:1])
    recorded = found(read_record(RECORD)["runs"], setting)[0]
    assert np.isclose(lookup_accuracy(model), recorded, atol=0.1)
