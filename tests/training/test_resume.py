"""A stopped and resumed run ends with the weights of an uninterrupted run."""

import os
import signal
from pathlib import Path

import pytest
import torch
from tiny_training import assert_equal, at_step, make_model, make_pairs, make_trainer, weights_of

from transformer.training.checkpoint import load_state, load_weights
from transformer.training.curve import read_curve

pytestmark = pytest.mark.usefixtures("unchecked")

# A step takes 2 batches of about 10, so an epoch ends within the run, and dropout is on.
RUN = dict(max_steps=16, accumulate=2, keep_last=2)
VALIDATION = make_pairs(10, seed=1)


def trainer_in(folder, **changes):
    return make_trainer(folder, validation=VALIDATION, **RUN | changes)


@pytest.fixture(scope="module")
def uninterrupted(unchecked, tmp_path_factory):
    trainer = trainer_in(tmp_path_factory.mktemp("uninterrupted"))
    assert trainer.accelerator.device.type == "cpu", "also on a machine with a GPU"
    assert trainer.fit() is True
    assert trainer.epoch >= 2 and 0 < trainer.position < len(trainer.batches)
    return trainer


def assert_same_run(folder: Path, trainer, uninterrupted):
    """Compare weights, kept files, best score, and the curve without its times."""
    assert_equal(weights_of(uninterrupted.model), weights_of(trainer.model))
    for kept in ("step-00000012", "step-00000016", "best"):
        theirs = load_weights(uninterrupted.folder / f"checkpoints/{kept}.safetensors")
        for name, weight in load_weights(folder / f"checkpoints/{kept}.safetensors").items():
            assert torch.equal(weight, theirs[name]), (kept, name)
    progress = ("step", "epoch", "position", "tokens", "best")
    assert [getattr(trainer, p) for p in progress] == [getattr(uninterrupted, p) for p in progress]
    clock = ("minutes", "tokens_per_second")
    curves = [
        [
            {k: v for k, v in line.items() if k not in clock}
            for line in read_curve(f / "curve.jsonl")
        ]
        for f in (folder, uninterrupted.folder)
    ]
    assert curves[0] == curves[1]
    assert not list(folder.rglob("*.tmp"))


def fit_until_signal(trainer, step, number):
    at_step(trainer, step, lambda: os.kill(os.getpid(), number))
    assert trainer.fit() is False
    assert trainer.step == step


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_run_with_a_checkpoint_to_go_on_from(tmp_path, uninterrupted, number):
    stopped = trainer_in(tmp_path)
    fit_until_signal(stopped, 6, number)  # between two checkpoints, in mid-epoch
    assert 0 < stopped.position < len(stopped.batches)
    assert load_state(stopped.state_file)["progress"]["step"] == 6
    torch.manual_seed(99)
    going_on = make_trainer(tmp_path, make_model(seed=5), validation=VALIDATION, **RUN)
    going_on.resume()
    assert going_on.step == 6
    assert going_on.fit() is True
    assert_same_run(tmp_path, going_on, uninterrupted)


def test_a_crash_between_checkpoints_leaves_no_double_lines(tmp_path, uninterrupted):
    trainer = trainer_in(tmp_path)

    def crash():
        raise KeyError("a bug")

    at_step(trainer, 11, crash)
    with pytest.raises(KeyError):
        trainer.fit()
    assert read_curve(tmp_path / "curve.jsonl")[-1]["step"] == 10
    (tmp_path / ".state.pt.123.tmp").write_bytes(b"half a")
    (tmp_path / "checkpoints/.step-00000012.safetensors.123.tmp").write_bytes(b"half a")
    again = trainer_in(tmp_path)
    again.resume()
    assert again.step == 8
    assert again.fit() is True
    assert_same_run(tmp_path, again, uninterrupted)


def test_an_error_at_a_validation_costs_no_step(tmp_path, uninterrupted):
    def score(model):
        raise KeyError("a bug")

    with pytest.raises(KeyError):
        trainer_in(tmp_path, score=score, save_every=100).fit()
    going_on = trainer_in(tmp_path, save_every=100)
    going_on.resume()
    assert going_on.step == 6 and going_on.fit() is True
    assert_equal(weights_of(uninterrupted.model), weights_of(going_on.model))


def test_a_finished_run_has_nothing_left_to_do(uninterrupted):
    before = (uninterrupted.folder / "curve.jsonl").read_text()
    again = trainer_in(uninterrupted.folder)
    assert again.fit() is True and again.step == 16
    assert (uninterrupted.folder / "curve.jsonl").read_text() == before


def test_more_steps_may_be_asked_for(tmp_path, uninterrupted):
    trainer_in(tmp_path, max_steps=12, log_every=5, keep_last=1).fit()
    longer = trainer_in(tmp_path)
    longer.resume()
    assert longer.step == 12 and longer.fit() is True
    assert_equal(weights_of(uninterrupted.model), weights_of(longer.model))


def test_settings_that_only_save_memory_or_time_may_change(tmp_path):
    trainer_in(tmp_path, max_steps=2).fit()
    other = trainer_in(tmp_path, compile=True, checkpoint_activations=True, fast=False)
    other.resume()
    assert other.step == 2


@pytest.mark.parametrize(
    "changes, fields",
    [
        (dict(accumulate=3), ["accumulate: 2 there, 3 here"]),
        (dict(seed=7, clip_norm=1.0), ["seed: 0 there, 7 here", "clip_norm: None there, 1.0 here"]),
        (dict(model=make_model(num_heads=4)), ["model.num_heads: 2 there, 4 here"]),
        (dict(pairs=make_pairs(seed=3)), ["text: "]),
    ],
)
def test_another_configuration_is_refused(uninterrupted, changes, fields):
    before = {p: p.stat().st_mtime_ns for p in uninterrupted.folder.rglob("*")}
    with pytest.raises(ValueError, match="holds a run of another configuration") as caught:
        trainer_in(uninterrupted.folder, **changes).fit()
    for field in fields:
        assert field in str(caught.value)
    assert str(caught.value).count(" there, ") == len(fields)
    assert {p: p.stat().st_mtime_ns for p in uninterrupted.folder.rglob("*")} == before
