"""Multiply-adds, sequential steps and memory of a call, counted by dispatch modes while it runs."""

import math
import weakref
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode


def multiply_adds(layer: Callable[[Tensor], Tensor], x: Tensor) -> dict[str, int]:
    """Count the multiply-adds of products and convolutions of a forward pass, as Table 1 does."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        layer(x)
    counts = counter.get_flop_counts().get("Global", {})
    return {str(operation).partition(".")[2]: count // 2 for operation, count in counts.items()}


class _Steps(TorchDispatchMode):
    """Record the step at which each tensor is ready: one after the last of its inputs."""

    def __init__(self, sums: bool):
        super().__init__()
        self.sums = sums
        self.ready: dict[Any, int] = {}
        self.kept: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        before = {_storage(tensor) for tensor in _tensors((args, kwargs))}
        result = func(*args, **(kwargs or {}))
        start = max((self.ready.get(storage, 0) for storage in before), default=0)
        for tensor in _tensors(result):
            storage = _storage(tensor)
            # A result in an input's storage is a view, which costs nothing, or a change in place.
            if storage not in before or func._schema.is_mutable:
                steps = _depth(func, args) if self.sums else 1
                self.ready[storage] = max(self.ready.get(storage, 0), start + steps)
        self.kept.append(result)  # so that its address is not used again
        return result


def sequential_steps(layer: Callable[[Tensor], Tensor], x: Tensor, sums: bool = False) -> int:
    """Count the longest chain of operations; with ``sums``, one of m products takes 1 + log2(m)."""
    with torch.no_grad(), _Steps(sums) as counter:
        output = layer(x)
    return counter.ready[_storage(output)]


class _Memory(TorchDispatchMode):
    """Sum the sizes of all live storages."""

    def __init__(self, known: set[int]):
        super().__init__()
        self.alive, self.now, self.peak = dict.fromkeys(known, 0), 0, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for tensor in _tensors(result):
            storage = tensor.untyped_storage()
            if storage._cdata not in self.alive:
                self.alive[storage._cdata] = storage.nbytes()
                self.now += storage.nbytes()
                weakref.finalize(storage, self.release, storage._cdata)
        self.peak = max(self.peak, self.now)
        return result

    def release(self, storage: int) -> None:
        self.now -= self.alive.pop(storage, 0)


def peak_bytes(call: Callable[[], object], known: Iterable[Tensor] = ()) -> int:
    """Measure the peak memory of the tensors that a call allocates, gradients included."""
    with _Memory({_storage(tensor) for tensor in known}) as memory:
        call()
    return memory.peak


def peak_memory(layer: nn.Module, x: Tensor, backward: bool = True) -> int:
    """Measure the peak in bytes of a pass, of output and gradients, without input and weights."""
    x = x.detach().requires_grad_(backward)
    gradients = [parameter.grad for parameter in layer.parameters()]
    layer.zero_grad(set_to_none=True)

    def run() -> None:
        if backward:
            layer(x).sum().backward()
        else:
            layer(x)

    with torch.set_grad_enabled(backward):
        peak = peak_bytes(run, (x, *layer.parameters()))
    for parameter, gradient in zip(layer.parameters(), gradients, strict=True):
        parameter.grad = gradient
    return peak


def _tensors(tree: Any) -> Iterator[Tensor]:
    return (leaf for leaf in tree_leaves(tree) if isinstance(leaf, Tensor))


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata


def _depth(func: Any, args: Any) -> int:
    """Return the steps of one operation if an addition takes two numbers."""
    match func._schema.name.removeprefix("aten::"):
        case "mm" | "bmm":
            return 1 + _halvings(args[0].size(-1))
        case "addmm":
            return 1 + _halvings(args[1].size(-1) + 1)  # the bias is one more to add
        case "convolution":
            return 1 + _halvings(args[1][0].numel() + (args[2] is not None))
        case "_softmax":
            return 2 * _halvings(args[0].size(args[1])) + 2  # largest, exp, sum, division
    return 1


def _halvings(count: int) -> int:
    return math.ceil(math.log2(count)) if count > 1 else 0
