"""Between two lines of the curve, a step never makes the host wait for the device.

On a GPU, a step is a queue of kernels that the host fills faster than they run. Reading a value
blocks the host until the queue is empty, and then the GPU idles.
"""

import pytest
import torch
from tiny_training import at_step, make_model, make_trainer

from tests.host_reads import HostReads
from transformer.fast import packing
from transformer.training.callbacks import Callback, Callbacks
from transformer.training.stream import step_batches

RECIPES = [dict(), dict(accumulate=3, clip_norm=0.1), dict(precision="bf16"),
           dict(checkpoint_activations=True), dict(fast=False)]  # fmt: skip


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_a_step_waits_for_nothing(tmp_path, monkeypatch, recipe):
    monkeypatch.setattr(packing, "may_look", lambda values: False)  # as on a GPU
    trainer = make_trainer(tmp_path, make_model(), **recipe)
    steps = step_batches(trainer.batches, trainer.config.accumulate)
    for _ in range(3):
        step = next(steps)
        with HostReads() as host:
            trainer.train_step(step.batches, step.target_tokens)
        assert not host.reads
        trainer.step += 1


def test_fit_reads_values_only_for_lines_of_the_curve(tmp_path, monkeypatch):
    monkeypatch.setattr(packing, "may_look", lambda values: False)  # as on a GPU
    trainer = make_trainer(tmp_path, max_steps=12, log_every=5, validate_every=8, save_every=100)
    asked, host = set(), HostReads()
    at_step(trainer, 1, host.reads.clear)

    class Ask(Callback):
        def on_step(self, trainer):
            if host.reads:
                asked.add(trainer.step - 1)
            host.reads.clear()

    trainer.callbacks = Callbacks([Ask()])
    with host:
        trainer.fit()
    assert asked | {12} == {5, 8, 10, 12}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("recipe", [*RECIPES, dict(precision="fp16")], ids=str)
def test_cuda_reports_no_synchronisation(tmp_path, gpu, recipe):
    trainer = make_trainer(tmp_path, make_model(), **recipe)
    steps = step_batches(trainer.batches, trainer.config.accumulate)
    try:
        for _ in range(3):  # the first initialises
            step = next(steps)
            trainer.train_step(step.batches, step.target_tokens)
            trainer.step += 1
            torch.cuda.set_sync_debug_mode("error")
    finally:
        torch.cuda.set_sync_debug_mode("default")
