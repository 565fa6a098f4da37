"""Between two lines of the curve nobody waits for the device: no number of it is asked for.

On a GPU a step is a queue of kernels that the program fills faster than they run. Whoever asks for
a value waits until the queue is empty, and then the GPU waits for the program. On a CPU that costs
nothing, so it has to be watched for: every operation of a step is looked at.
"""

import pytest
import torch
from tiny_training import make_model, make_trainer
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from transformer.data.batching import Batch
from transformer.model import attention, packing, transformer
from transformer.model.transformer import Transformer
from transformer.training.stream import send, step_batches

aten = torch.ops.aten


class HostWait(AssertionError):
    """Something that makes the program wait for the device."""


class _Operations(TorchDispatchMode):
    """Refuses operations whose result, or whose shape, depends on values."""

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
    """Refuses calls that carry values from or to the program without an operation of their own."""

    READING = (Tensor.tolist, Tensor.numpy, Tensor.cpu, Tensor.__array__)
    WRITING = (torch.tensor, torch.as_tensor)  # to a GPU these wait until the copy is made

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func in self.READING:
            raise HostWait(f"{func} reads values")
        if func in self.WRITING and "device" in (kwargs or {}):
            raise HostWait(f"{func} waits for a copy to the device")
        return func(*args, **kwargs or {})


def ask_as_on_a_gpu(monkeypatch):
    """On a CPU nobody waits for a count of real positions; a GPU is not asked for one."""
    for module in (attention, packing, transformer):
        monkeypatch.setattr(module, "may_look", lambda values: False)


def step_without_waiting(trainer):
    """Take one step to make what is made once, then another one that is watched."""
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
           dict(checkpoint_activations=True)]  # fmt: skip


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_a_step_asks_for_no_number(tmp_path, monkeypatch, recipe):
    ask_as_on_a_gpu(monkeypatch)
    trainer = make_trainer(tmp_path, **recipe)
    assert step_without_waiting(trainer).isfinite()


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: x.item(), lambda x: float(x), lambda x: bool(x > 0), lambda x: x.tolist(),
        lambda x: x.numpy(), lambda x: x.cpu(), lambda x: x.view(1)[x.view(1) > 0],
        lambda x: x.nonzero(), lambda x: torch.tensor(1.0, device=x.device),
    ],
)  # fmt: skip
def test_whoever_asks_for_one_is_found(tmp_path, monkeypatch, ask):
    ask_as_on_a_gpu(monkeypatch)
    trainer, encode = make_trainer(tmp_path), Transformer.encode

    def asking(self, *arguments):
        memory = encode(self, *arguments)
        ask(memory.detach().sum())
        return memory

    monkeypatch.setattr(Transformer, "encode", asking)
    with pytest.raises(HostWait):
        step_without_waiting(trainer)


def test_fit_asks_at_the_lines_of_the_curve_only(tmp_path, monkeypatch):
    ask_as_on_a_gpu(monkeypatch)
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
def test_cuda_sees_no_wait_either(tmp_path, monkeypatch, recipe):
    monkeypatch.setenv("ACCELERATE_USE_CPU", "false")
    trainer = make_trainer(tmp_path, make_model(), **recipe)
    steps = step_batches(trainer.batches, trainer.config.accumulate)
    try:
        for _ in range(3):  # the first makes what is made once
            step = next(steps)
            trainer._train_step(step.batches, step.target_tokens)
            trainer.step += 1
            torch.cuda.set_sync_debug_mode("error")
    finally:
        torch.cuda.set_sync_debug_mode("default")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_what_is_sent_to_a_gpu_arrives(tmp_path):
    batch = next(step_batches(make_trainer(tmp_path).batches)).batches[0]
    there = send(batch, torch.device("cuda"))
    torch.cuda.synchronize()
    for name in ("source", "target_input", "labels"):
        assert torch.equal(getattr(there, name).cpu(), getattr(batch, name)), name


def test_a_batch_is_sent_from_memory_that_stays_where_it_is(tmp_path, monkeypatch):
    batch = next(step_batches(make_trainer(tmp_path).batches)).batches[0]
    pinned, sent = [], []
    monkeypatch.setattr(Tensor, "pin_memory", lambda tensor: pinned.append(tensor) or tensor)
    monkeypatch.setattr(Batch, "to", lambda self, *where, **how: sent.append((*where, how)) or self)
    send(batch, torch.device("cuda", 0))
    assert all(any(one is getattr(batch, name) for one in pinned)
               for name in ("source", "target_input", "labels"))  # fmt: skip
    assert sent == [(torch.device("cuda", 0), dict(non_blocking=True))]
    pinned.clear()
    send(batch, torch.device("cpu"))
    assert not pinned and len(sent) == 2
