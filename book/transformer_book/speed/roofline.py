"""What a training step launches, computes and moves on a GPU, and how long a card needs for it.

PyTorch's own interfaces count, so the device need not be the card of the estimate.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor
from torch._inductor.runtime.runtime_utils import get_num_bytes
from torch._inductor.runtime.triton_heuristics import CachingAutotuner
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from transformer.data.batching import TokenBatches
from transformer.recipes.architectures import build_model
from transformer.recipes.cards import HOST, SUSTAINED, Card
from transformer.recipes.presets import Preset
from transformer.training.stream import step_batches
from transformer.training.trainer import Trainer

#: Counts of the steps of two presets.
RECORD = Path(__file__).parent / "roofline.json"

#: Operations per second that the largest matrix products may reach on an H100 (assumed).
BEST_PRODUCTS = 800e12

#: Share of :data:`BEST_PRODUCTS` that the steps should at least reach, by preset.
AIMS = {"wmt14-base": 0.35, "wmt14-big": 0.5}

aten = torch.ops.aten
_PRODUCTS = {aten.mm, aten.addmm, aten.bmm, aten.baddbmm}
_OVERWRITING = {aten.copy_, aten.fill_, aten.zero_}
#: Operators that touch only some rows of the table that is their first argument.
_INDEXING = {
    aten.embedding, aten.gather, aten.index, aten.index_select, aten.index_put_, aten.scatter_,
    aten.scatter_add_,
}  # fmt: skip


@dataclass(frozen=True)
class StepCount:
    """Counts of a training step, each the mean over several steps."""

    kernels: float  #: launched on the device; an operator counts as one
    product_flops: float  #: operations of the matrix products, those inside attention included
    other_bytes: float  #: that all kernels but the matrix products read and write
    batches: int  #: whose gradients the step adds up
    target_tokens: float  #: without padding
    peak_bytes: int  #: of device memory

    def seconds(self, card: Card) -> float:
        """Estimate the time of the step on a card from the rates that it sustains."""
        products, copies = SUSTAINED
        computing = self.product_flops / (products * card.flops)
        moving = self.other_bytes / (copies * card.bandwidth)
        return max(computing + moving, HOST * self.batches)

    def utilisation(self, card: Card) -> float:
        """Estimate the share of the data sheet's rate that becomes matrix products."""
        return self.product_flops / self.seconds(card) / card.flops


class KernelCounter(TorchDispatchMode):
    """Count the operators that run on a type of device, and the kernels that Inductor made for it.

    Enter it as ``with counting(...)``, after compiled functions have been called once: what the
    compiler runs is counted, too. Bytes are the sizes of what a kernel reads plus those of what it
    writes, each tensor once.

    Args:
        device: "cuda" or another type of device.
    """

    def __init__(self, device: str):
        super().__init__()
        self.device = device
        self.kernels = self.product_flops = self.other_bytes = 0

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """Let compiled functions run; by default PyTorch runs the originals inside a mode."""
        return True

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Run an operator, and count it unless it consists of others."""
        kwargs = kwargs or {}
        with self:
            parts = func.decompose(*args, **kwargs)
        if parts is not NotImplemented:
            return parts
        output = func(*args, **kwargs)
        self._count(func, args, kwargs, output)
        return output

    def _count(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        kind, schema = func.overloadpacket, func._schema.arguments
        values = [*zip(schema, args, strict=False)]
        values += [(one, kwargs[one.name]) for one in schema if one.name in kwargs]
        moved, before = [], set()
        for argument, value in values:
            written = argument.alias_info is not None and argument.alias_info.is_write
            overwritten = written and (argument.is_out or kind in _OVERWRITING)
            for tensor in self._tensors(value):
                moved += [_bytes(tensor)] * (1 + written - overwritten)
                before.add(tensor.untyped_storage()._cdata)
        written_anew = [
            _bytes(t) for t in self._tensors(output) if t.untyped_storage()._cdata not in before
        ]
        if not (written_anew or func._schema.is_mutable) or "empty" in func.name():
            return  # a view, or memory that nothing is written to
        if re.search(r"::new_|_like", func.name()):
            moved = []  # the argument gives only the type or the shape
        moved += written_anew
        if not moved:
            return  # on another device
        if kind in _INDEXING:
            table = self._tensors(args[0])[0]
            others = [_bytes(t) for t in self._tensors([args[1:], kwargs, written_anew and output])]
            touched = min(_bytes(table), max(others))
            moved = [touched if size == _bytes(table) else size for size in moved]
        self.kernels += 1
        if kind in flop_registry:
            self.product_flops += flop_registry[kind](*args, **kwargs, out_val=output)
        if kind not in _PRODUCTS:
            self.other_bytes += sum(moved)

    def _tensors(self, values: Any) -> list[Tensor]:
        leaves = tree_leaves(values)
        return [t for t in leaves if isinstance(t, Tensor) and t.device.type == self.device]


def _bytes(tensor: Tensor) -> int:
    return min(tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes())


@contextmanager
def counting(device: str = "cuda") -> Iterator[KernelCounter]:
    """Count everything that runs on a type of device while the context lasts."""
    counter, launch = KernelCounter(device), CachingAutotuner.run

    def run(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        counter.kernels += 1
        changed = sum(name.startswith("in_out_ptr") for name in kernel.fn.arg_names)
        counter.other_bytes += get_num_bytes(*args, num_in_out_args=changed)
        return launch(kernel, *args, **kwargs)

    with patch.object(CachingAutotuner, "run", run), counter:
        yield counter


def count_steps(preset: Preset, batches: TokenBatches, steps: int = 6) -> StepCount:
    """Count what steps of the real training loop do.

    Steps on the same batches come first: what the compiler runs for their shapes is not counted.

    Args:
        preset: the recipe, fitted to a card.
        batches: the training pairs.
        steps: that are counted.
    """
    accumulate = preset.training.accumulate
    with TemporaryDirectory() as folder:
        trainer = Trainer(
            build_model(preset.model), batches, preset.training, folder, progress=False
        )
        trainer.loss.train()
        device = trainer.accelerator.device.type
        group = list(islice(step_batches(batches, accumulate), steps))

        def train() -> None:
            for step in group:
                trainer._train_step(step.batches, step.target_tokens)
                trainer.step += 1

        train()
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        with counting(device) as counter:
            train()
    return StepCount(
        kernels=counter.kernels / steps,
        product_flops=counter.product_flops / steps,
        other_bytes=counter.other_bytes / steps,
        batches=accumulate,
        target_tokens=sum(step.target_tokens for step in group) / steps,
        peak_bytes=torch.cuda.max_memory_allocated() if device == "cuda" else 0,
    )
