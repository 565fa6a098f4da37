"""Between two lines of the curve, a step never makes the host wait for the device.

On a GPU, a step is a queue of kernels that the host fills faster than they run. Reading a value
blocks the host until the queue is empty, and then the GPU idles.
"""

from collections import Counter
from pathlib import Path

import pytest
import torch
from accelerate import Accelerator
from tiny_training import make_model, make_trainer
from torch import Tensor
from torch.overrides import TorchFunctionMode

from tests.pretend_device import DEVICE, pretend_device
from transformer.fast import packing
from transformer.training import writer
from transformer.training.stream import step_batches

READING = (Tensor.tolist, Tensor.numpy, Tensor.cpu, Tensor.__array__, Tensor.item, Tensor.__bool__)
RECIPES = [dict(), dict(accumulate=3, clip_norm=0.1), dict(precision="bf16"),
           dict(checkpoint_activations=True), dict(fast=False)]  # fmt: skip


def four_losses(trainer, waits: Counter | None = None) -> list[float]:
    """Take four steps; count the waits after the first, which initialises, and before reading."""
    steps, found = step_batches(trainer.batches, trainer.config.accumulate), []
    for number in range(4):
        step = next(steps)
        if number == 1 and waits is not None:
            waits.clear()
        found.append(trainer._train_step(step.batches, step.target_tokens))
        trainer.step += 1
    counted = Counter(waits)
    losses = [loss.item() for loss in found]
    if waits is not None:
        waits.clear()
        waits.update(counted)
    return losses


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_a_step_waits_for_nothing(tmp_path, monkeypatch, recipe):
    folders: list[Path] = [tmp_path / "cpu", tmp_path / "device"]
    expected = four_losses(make_trainer(folders[0], make_model(dropout=0.0), **recipe))
    with pretend_device() as device, monkeypatch.context() as patch:
        patch.setattr(Accelerator, "device", DEVICE)
        trainer = make_trainer(folders[1], make_model(dropout=0.0), **recipe)
        found = four_losses(trainer, device.waits)
    assert device.waits == {}
    bf16 = recipe.get("precision") == "bf16"
    assert found == pytest.approx(expected, rel=1e-2 if bf16 else 1e-5)


@pytest.mark.parametrize("minutes, files", [(1e9, 1), (None, 2)])
def test_a_checkpoint_waits_once_per_file(tmp_path, monkeypatch, minutes, files):
    """The weights, and the state if it is time."""
    written = []
    with pretend_device() as device, monkeypatch.context() as patch:
        patch.setattr(Accelerator, "device", DEVICE)
        patch.setattr(writer, "_PINNING", DEVICE.type)
        patch.setattr(torch.cuda, "synchronize", lambda _: device.waits.update(["synchronize"]))
        trainer = make_trainer(tmp_path, state_minutes=minutes)
        patch.setattr(trainer.writer, "submit", lambda *job: written.append(job))
        step = next(step_batches(trainer.batches, 1))
        trainer._train_step(step.batches, step.target_tokens)
        trainer.state_seconds = 0.0  # as fit() does at its start
        device.waits.clear()
        trainer._save(weights=True, ending=False)
    assert len(written) == files and device.waits == {"synchronize": files}


def test_fit_reads_values_only_for_lines_of_the_curve(tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "may_look", lambda values: False)  # as on a GPU
    trainer = make_trainer(tmp_path, max_steps=12, log_every=5, validate_every=8, save_every=100)
    asked = []

    class Count(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func in READING:
                asked.append(trainer.step)
            return func(*args, **kwargs or {})

    with Count():
        trainer.fit()
    assert set(asked) == {5, 8, 10, 12}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("recipe", [*RECIPES, dict(precision="fp16")], ids=str)
def test_cuda_reports_no_synchronisation(tmp_path, gpu, recipe):
    trainer = make_trainer(tmp_path, make_model(), **recipe)
    steps = step_batches(trainer.batches, trainer.config.accumulate)
    try:
        for _ in range(3):  # the first initialises
            step = next(steps)
            trainer._train_step(step.batches, step.target_tokens)
            trainer.step += 1
            torch.cuda.set_sync_debug_mode("error")
    finally:
        torch.cuda.set_sync_debug_mode("default")
