"""Between two lines of the curve, a step never makes the host wait for the device.

On a GPU, a step is a queue of kernels that the host fills faster than they run. Reading a value
blocks the host until the queue is empty, and then the GPU idles. On a CPU this costs nothing, so
these tests inspect every operation of a step.
"""

import pytest
import torch
from tiny_training import make_model, make_trainer
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from transformer.fast import packing
from transformer.training.stream import step_batches

aten = torch.ops.aten


class HostWait(AssertionError):
    """An operation makes the host wait for the device."""


class _Operations(TorchDispatchMode):
    """Refuse operations whose result or shape the host must read."""

    READING = (
        aten._local_scalar_dense,  # item, int, float, bool
        aten.nonzero,
        aten.masked_select,
        aten.equal,
        aten._unique2,
        aten.unique_consecutive,
    )

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.overloadpacket in self.READING:
            raise HostWait(f"{func} reads a value")
        by_index = func.overloadpacket in (aten.index, aten.index_put, aten.index_put_)
        if by_index and any(x is not None and x.dtype == torch.bool for x in args[1]):
            raise HostWait(f"{func} by a mask counts what is True")
        return func(*args, **kwargs or {})


class _Calls(TorchFunctionMode):
    """Refuse calls that copy values between host and device without an operation of their own."""

    READING = (Tensor.tolist, Tensor.numpy, Tensor.cpu, Tensor.__array__)
    WRITING = (torch.tensor, torch.as_tensor)  # to a GPU these wait until the copy is made

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in self.READING:
            raise HostWait(f"{func} reads values")
        if func in self.WRITING and "device" in (kwargs or {}):
            raise HostWait(f"{func} waits for a copy to the device")
        return func(*args, **kwargs or {})


@pytest.fixture(autouse=True)
def as_on_a_gpu(monkeypatch):
    """On a CPU, packing may read the number of real positions; on a GPU it does not."""
    monkeypatch.setattr(packing, "may_look", lambda values: False)


def step_without_waiting(trainer):
    """Take one step for one-time initialisation, then another one that is inspected."""
    steps = step_batches(trainer.batches, trainer.config.accumulate)
    for watched in (False, True):
        step = next(steps)
        if watched:
            with _Calls(), _Operations():
                loss = trainer._train_step(step.batches, step.target_tokens)
        else:
            loss = trainer._train_step(step.batches, step.target_tokens)
        trainer.step += 1
    return loss


RECIPES = [dict(), dict(accumulate=3, clip_norm=0.1), dict(precision="bf16"),
           dict(checkpoint_activations=True), dict(fast=False)]  # fmt: skip


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_a_step_reads_no_value(tmp_path, recipe):
    trainer = make_trainer(tmp_path, **recipe)
    assert step_without_waiting(trainer).isfinite()


def test_fit_reads_values_only_for_lines_of_the_curve(tmp_path):
    trainer = make_trainer(tmp_path, max_steps=12, log_every=5, validate_every=8, save_every=100)
    asked = []

    class Count(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func in (*_Calls.READING, Tensor.item, Tensor.__bool__):
                asked.append(trainer.step)
            return func(*args, **kwargs or {})

    with Count():
        trainer.fit()
    assert set(asked) == {5, 8, 10, 12}


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("recipe", [*RECIPES, dict(precision="fp16")], ids=str)
def test_cuda_reports_no_synchronisation(tmp_path, monkeypatch, recipe):
    monkeypatch.setenv("ACCELERATE_USE_CPU", "false")
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
