"""The explorers of chapters 14 and 15 show the package's loss and schedule, and load nothing."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.self_contained import self_contained
from transformer.training.loss import smoothed_targets
from transformer.training.schedule import learning_rate
from transformer_book.widgets.training import FACTORS, SIZES, ScheduleExplorer, TargetExplorer

V = 20
LABELS = torch.tensor([3, 0, 19])


def target():
    logits = torch.randn(3, V, generator=torch.Generator().manual_seed(0)) * 3
    return TargetExplorer(logits, LABELS, [f"<{i}>" for i in range(V)], step=1), logits


@pytest.mark.parametrize("make", [lambda: target()[0], ScheduleExplorer])
def test_it_is_small_repeatable_and_loads_nothing(make):
    self_contained(make, 100_000)


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.3])
def test_target_loss_and_floor_are_the_packages(epsilon):
    explorer, logits = target()
    wanted = F.cross_entropy(logits, LABELS, label_smoothing=epsilon, reduction="none")
    q = smoothed_targets(LABELS, V, epsilon)[0].double()
    for step in range(3):
        assert explorer.loss(step, epsilon) == pytest.approx(wanted[step].item(), rel=1e-5)
    assert explorer.target(epsilon) == pytest.approx((q[3].item(), q[0].item()))
    assert explorer.floor(epsilon) == pytest.approx(-torch.xlogy(q, q).sum().item(), abs=1e-6)


def test_the_right_token_comes_first_and_then_the_likeliest():
    explorer, logits = target()
    p = logits.softmax(dim=-1)
    for row, label in enumerate(LABELS.tolist()):
        order = [i for i in p[row].argsort(descending=True).tolist() if i != label]
        assert explorer.tokens[row] == [f"<{i}>" for i in [label, *order[:4]]]
        shown = [math.exp(value) for value in explorer.payload()["logP"][row]]
        assert shown == pytest.approx(p[row, [label, *order[:4]]].tolist(), abs=1e-3)
    with pytest.raises(ValueError, match="3 entries"):
        TargetExplorer(logits, LABELS[:2], ["a"] * V)


def test_the_schedule_is_eq_3():
    explorer, steps = ScheduleExplorer(), np.array([1, 40, 4000, 90_000])
    for size in SIZES:
        for factor in FACTORS:
            wanted = [learning_rate(int(step), size, 400, factor) for step in steps]
            assert explorer.rates(steps, size, 400, factor) == pytest.approx(wanted)
    assert explorer.rates(np.array([4000])) == pytest.approx(0.0007, abs=2e-6)  # as it says
