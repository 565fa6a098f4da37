"""The user's own optimizer and schedule: used as given, saved, and refused where they cannot be."""

import math
import os
import signal

import pytest
from tiny_training import assert_equal, at_step, make_model, make_trainer, weights_of
from torch.optim import SGD, Adam, AdamW
from torch.optim.lr_scheduler import CosineAnnealingLR, MultiStepLR, OneCycleLR, ReduceLROnPlateau

from transformer.training.curve import read_curve
from transformer.training.schedule import learning_rate

pytestmark = pytest.mark.usefixtures("unchecked")
RUN = dict(max_steps=16, warmup_steps=4000, accumulate=2)


def rates(folder):
    return [line["learning_rate"] for line in read_curve(folder / "curve.jsonl") if "loss" in line]


def trainer_in(folder, optimizer=None, schedule=None, **changes):
    """``optimizer`` and ``schedule`` are functions that make one, for a new model."""
    model = make_model()
    optimizer = optimizer and optimizer(model.parameters())
    schedule = schedule and schedule(optimizer)
    own = dict(optimizer=optimizer, schedule=schedule)
    return make_trainer(folder, model, own=own, **RUN | changes)


def adamw(parameters):
    return AdamW(parameters, lr=3e-3, weight_decay=0.1)


OWN = {
    "optimizer": (adamw, None),
    "one cycle": (adamw, lambda o: OneCycleLR(o, max_lr=1e-2, total_steps=17)),
    "milestones": (lambda p: SGD(p, 0.1, momentum=0.9), lambda o: MultiStepLR(o, [5, 9])),
    "function": (adamw, lambda o: lambda step: 0.01 / step),
}


@pytest.mark.parametrize("kind", OWN)
def test_a_resumed_run_ends_in_the_same_weights(tmp_path, kind):
    straight = trainer_in(tmp_path / "straight", *OWN[kind])
    assert straight.fit()
    for stop in (6, 11):  # between two checkpoints
        stopped = trainer_in(tmp_path / "stopped", *OWN[kind])
        at_step(stopped, stop, lambda: os.kill(os.getpid(), signal.SIGTERM))
        assert not stopped.fit()
    last = trainer_in(tmp_path / "stopped", *OWN[kind])
    assert last.fit()
    assert_equal(weights_of(straight.model), weights_of(last.model))
    assert rates(tmp_path / "stopped") == rates(tmp_path / "straight")


def test_each_step_has_the_learning_rate_that_was_asked_for(tmp_path):
    trainer_in(tmp_path / "own", adamw).fit()
    assert rates(tmp_path / "own") == [3e-3] * 16
    trainer_in(tmp_path / "function", None, lambda _: lambda step: 0.01 / step).fit()
    assert rates(tmp_path / "function") == [0.01 / step for step in range(1, 17)]
    trainer_in(tmp_path / "cosine", adamw, lambda o: CosineAnnealingLR(o, 16)).fit()
    cosine = [3e-3 * (1 + math.cos(math.pi * step / 16)) / 2 for step in range(16)]
    assert rates(tmp_path / "cosine") == pytest.approx(cosine)


def test_the_papers_optimizer_made_by_hand_is_the_built_in_one(tmp_path):
    built_in = make_trainer(tmp_path / "built in", warmup_steps=8)
    built_in.fit()
    by_hand = trainer_in(
        tmp_path / "by hand",
        lambda p: Adam(p, betas=(0.9, 0.98), eps=1e-9, fused=True),
        lambda _: lambda step: learning_rate(step, 16, 8),
        accumulate=1,
    )
    by_hand.fit()
    assert_equal(weights_of(built_in.model), weights_of(by_hand.model))


@pytest.mark.parametrize(
    "changes, name", [(dict(weight_decay=0.0), "weight_decay"), (dict(lr=1e-3), "lr")]
)
def test_another_setting_is_no_silent_change_of_a_run(tmp_path, changes, name):
    trainer_in(tmp_path, adamw, max_steps=4).fit()
    with pytest.raises(ValueError, match=rf"optimizer\.{name}: \[0\.\d+\] there"):
        trainer_in(tmp_path, lambda p: AdamW(p, **dict(lr=3e-3, weight_decay=0.1) | changes)).fit()
    with pytest.raises(ValueError, match="optimizer: 'AdamW' there, 'SGD' here"):
        trainer_in(tmp_path, lambda p: SGD(p, 0.1)).fit()
    with pytest.raises(ValueError, match="schedule: 'constant' there, 'CosineAnnealingLR' here"):
        trainer_in(tmp_path, adamw, lambda o: CosineAnnealingLR(o, 16)).fit()


def test_an_optimizer_of_other_parameters_is_refused_before_weights_are_loaded(tmp_path):
    half, model = make_model(), make_model(seed=5)
    own = dict(optimizer=AdamW(half.decoder.parameters()))
    make_trainer(tmp_path, half, own=own, **RUN | dict(max_steps=2)).fit()
    before, own = weights_of(model), dict(optimizer=AdamW(model.parameters()))
    with pytest.raises(ValueError, match=r"optimizer has groups of \[\d+\] parameters, that of"):
        make_trainer(tmp_path, model, own=own, **RUN).fit()
    assert_equal(weights_of(model), before)


@pytest.mark.parametrize(
    "optimizer, schedule, changes, says",
    [
        (adamw, None, dict(beta2=0.99), "beta2=0.99 has no effect with an optimizer of your own"),
        (adamw, None, dict(warmup_steps=8), "warmup_steps=8 has no effect with an optimizer"),
        (None, lambda o: lambda s: 1e-3, dict(learning_rate_factor=2.0), "learning_rate_factor=2"),
        (adamw, None, dict(shard=True), "with shard, optimizer must be a function"),
        (lambda p: SGD(make_model().parameters(), 0.1), None, {}, "do not belong to model"),
        (lambda p: "adam", None, {}, "optimizer must be a torch.optim.Optimizer, got str"),
        (lambda p: lambda q: "adam", None, {}, r"optimizer\(parameters\) must be .*, got str"),
        (adamw, lambda o: "cosine", {}, "schedule must be a function of the step .*, got str"),
        (adamw, lambda o: lambda step: None, {}, r"schedule\(1\) is None"),
        (adamw, lambda o: lambda step: math.nan, {}, r"schedule\(1\) is nan"),
        (None, lambda o: CosineAnnealingLR(SGD(make_model().parameters(), 0.1), 4), {},
         "schedule belongs to another optimizer"),
        (adamw, lambda o: ReduceLROnPlateau(o), {}, "step.. in a callback's on_validation"),
    ],
)  # fmt: skip
def test_what_would_be_ignored_or_fail_is_refused(tmp_path, optimizer, schedule, changes, says):
    with pytest.raises((TypeError, ValueError), match=says) as caught:
        trainer_in(tmp_path / "run", optimizer, schedule, **changes)
    assert "\n" not in str(caught.value) and not (tmp_path / "run").exists()
