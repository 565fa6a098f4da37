"""A stopped and resumed run ends with the weights of an uninterrupted run."""

import os
import signal
from pathlib import Path

import pytest
import torch
from tiny_training import assert_equal, at_step, make_model, make_pairs, make_trainer, weights_of

from transformer.training import config
from transformer.training.checkpoint import load_state, load_weights, save_state
from transformer.training.curve import read_curve
from transformer.training.state import get_random_state, set_random_state

pytestmark = pytest.mark.usefixtures("unchecked")

# A step takes 2 batches of about 10, so an epoch ends within the run, and dropout is on.
RUN = dict(max_steps=16, accumulate=2, keep_last=2)
VALIDATION = make_pairs(10, seed=1)


def trainer_in(folder, **changes):
    return make_trainer(folder, validation=VALIDATION, **RUN | changes)


@pytest.fixture(scope="module")
def uninterrupted(unchecked, tmp_path_factory):
    trainer = trainer_in(tmp_path_factory.mktemp("uninterrupted"))
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


def test_three_stops_and_a_trainer_that_is_used_again(tmp_path, uninterrupted):
    trainer = trainer_in(tmp_path)
    fit_until_signal(trainer, 1, signal.SIGTERM)
    fit_until_signal(trainer, 5, signal.SIGTERM)
    fit_until_signal(trainer_in(tmp_path), 13, signal.SIGINT)
    last = trainer_in(tmp_path)
    assert last.fit() is True
    assert_same_run(tmp_path, last, uninterrupted)


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


def test_fewer_steps_may_be_asked_for_than_were_taken(tmp_path):
    trainer_in(tmp_path, max_steps=8).fit()
    shorter = trainer_in(tmp_path, max_steps=4)
    assert shorter.fit() is True and shorter.step == 8


def test_a_trainer_goes_on_from_a_run_that_has_gone_on_without_it(tmp_path, uninterrupted):
    trainer = trainer_in(tmp_path)
    fit_until_signal(trainer, 6, signal.SIGINT)
    fit_until_signal(trainer_in(tmp_path), 13, signal.SIGINT)
    assert trainer.fit() is True
    assert_same_run(tmp_path, trainer, uninterrupted)


def test_random_numbers_between_resuming_and_training_do_not_matter(tmp_path, uninterrupted):
    stopped = trainer_in(tmp_path)
    stopped.resume()
    torch.rand(1)
    fit_until_signal(stopped, 6, signal.SIGTERM)
    going_on = trainer_in(tmp_path)
    going_on.resume()
    torch.rand(1)
    assert going_on.fit() is True
    assert_same_run(tmp_path, going_on, uninterrupted)


def test_the_random_state_of_an_apple_gpu_is_kept(monkeypatch):
    generators = dict(mps=torch.tensor([1, 2], dtype=torch.uint8))
    monkeypatch.setattr("torch.mps.get_rng_state", lambda: generators["mps"])
    monkeypatch.setattr("torch.mps.set_rng_state", lambda state: generators.update(mps=state))
    before = get_random_state(torch.device("mps"))
    generators["mps"] = torch.tensor([3, 4], dtype=torch.uint8)
    set_random_state(before, torch.device("mps"))
    assert generators["mps"].tolist() == [1, 2]
    set_random_state(before, torch.device("cpu"))  # the run may go on elsewhere


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


def test_a_state_of_an_older_version_goes_on(tmp_path, uninterrupted):
    """Settings that the older version did not store count as equal."""
    stopped = trainer_in(tmp_path)
    fit_until_signal(stopped, 6, signal.SIGTERM)
    state = load_state(stopped.state_file)
    del state["config"]["text"], state["config"]["half_residual"]
    save_state(state, stopped.state_file)
    going_on = trainer_in(tmp_path)
    assert going_on.fit() is True
    assert_same_run(tmp_path, going_on, uninterrupted)


def test_a_run_in_half_precision_goes_on_where_there_is_none(tmp_path, monkeypatch):
    monkeypatch.setattr(config, "multiplies_bfloat16", lambda: True)
    fit_until_signal(trainer_in(tmp_path, precision="bf16"), 6, signal.SIGTERM)
    monkeypatch.setattr(config, "multiplies_bfloat16", lambda: False)
    with pytest.warns(UserWarning, match='training runs in "fp32" instead of "bf16"'):
        going_on = trainer_in(tmp_path, precision="bf16")
    assert going_on.fit() and going_on.precision == "fp32"
    assert load_state(going_on.state_file)["config"]["precision"] == "bf16"


def test_a_run_goes_on_where_half_precision_needs_a_scaled_loss(tmp_path):
    """It began in bfloat16; the next card has float16 only, whose scaler finds no state."""
    fit_until_signal(trainer_in(tmp_path), 6, signal.SIGTERM)
    going_on = trainer_in(tmp_path)
    going_on.scaler = torch.amp.GradScaler("cpu")
    going_on.resume()
    assert going_on.step == 6
