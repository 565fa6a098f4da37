"""Checkpoints are written by a thread: steps go on, the order stays, and errors come out."""

import errno
import threading

import pytest
import torch
from tiny_training import at_step, make_trainer, weights_of

from transformer.training import run_folder
from transformer.training.callbacks import Callback
from transformer.training.checkpoint import load_state, load_weights
from transformer.training.kept_run import Writer, host_copy

pytestmark = pytest.mark.usefixtures("unchecked")


@pytest.fixture
def slow_disk(monkeypatch):
    """Nothing is written before the event is set."""
    ready = threading.Event()
    write = run_folder.save_weights

    def slowly(weights, path):
        assert ready.wait(60)
        write(weights, path)

    monkeypatch.setattr(run_folder, "save_weights", slowly)
    yield ready
    ready.set()


def test_after_an_error_nothing_else_is_written():
    done = []

    def fail():
        raise OSError(errno.ENOSPC, "full")

    with pytest.raises(OSError, match="full"), Writer() as writer:
        writer.submit(fail)
        writer.submit(lambda: done.append(1))
    assert done == []
    with pytest.raises(KeyError, match="mine"), Writer() as writer:  # the first error counts
        writer.submit(fail)
        raise KeyError("mine")


def test_a_copy_does_not_change_when_training_goes_on():
    weight = torch.ones(2, 3, requires_grad=True)
    live = dict(a=weight, b=[torch.zeros(2), (1, torch.ones(1))], c=[1])
    copied = host_copy(live)
    with torch.no_grad():
        weight.add_(5)
    live["b"][0].add_(5)
    live["c"].append(2)
    assert torch.equal(copied["a"], torch.ones(2, 3)) and not copied["a"].requires_grad
    assert torch.equal(copied["b"][0], torch.zeros(2)) and copied["c"] == [1]
    assert copied["b"][1][0] == 1


def test_steps_do_not_wait_for_the_disk(tmp_path, slow_disk):
    """The checkpoint of step 4 is written after step 5, with the weights of step 4."""
    weights = {}
    trainer = make_trainer(tmp_path, save_every=4, max_steps=12, state_minutes=1e-9)
    at_step(trainer, 4, lambda: weights.update(weights_of(trainer.model)), after=True)

    def look():
        assert not trainer.checkpoints()
        slow_disk.set()

    at_step(trainer, 6, look)
    assert trainer.fit() is True
    written = load_weights(trainer.checkpoints()[0])
    assert trainer.checkpoints()[0].stem == "step-00000004"
    assert all(torch.equal(written[name], weight) for name, weight in weights.items())
    assert load_state(trainer.state_file)["progress"]["step"] == 12


def test_the_state_is_saved_every_few_minutes_and_at_the_end(tmp_path, monkeypatch):
    class Slow(Callback):
        """Each step takes 41 seconds, so that 2 minutes have passed after 3 of them."""

        def on_log(self, trainer, numbers):
            trainer.seconds += 41

    saved = []
    keep = run_folder.keep_state
    monkeypatch.setattr(
        run_folder,
        "keep_state",
        lambda state, folder: (saved.append(state["progress"]["step"]), keep(state, folder)),
    )
    for minutes, expected in ((2.0, [3, 6, 9, 10]), (1e9, [10]), (None, [5, 10])):
        own = dict(callbacks=[Slow()])
        run = dict(max_steps=10, save_every=5, log_every=1, state_minutes=minutes)
        make_trainer(tmp_path / str(minutes), own=own, **run).fit()
        assert saved == expected
        saved.clear()
