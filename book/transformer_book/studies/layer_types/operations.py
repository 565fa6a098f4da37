"""Multiply-adds and memory of a call, counted by dispatch modes while it runs."""

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
