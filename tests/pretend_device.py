"""A device that computes on the CPU, refuses to mix devices and counts how often the host waits.

On a GPU, the host fills a queue of operations, and the GPU works through it. Reading a value blocks
the host until the queue is empty; a tensor on the wrong device is an error. On a CPU neither shows.
Here tensors are placed on a device of PyTorch's own spare kind, so that both do.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

import torch
from torch.utils import backend_registration
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_map_only, tree_unflatten

aten = torch.ops.aten

# The host must know their result, or the shape of it.
_READING = (aten._local_scalar_dense, aten.nonzero, aten.masked_select, aten.equal,
            aten._unique2, aten.unique_consecutive)  # fmt: skip
_INDEXING = (aten.index, aten.index_put, aten.index_put_)
_COPYING = (aten._to_copy, aten.copy_)


class _Backend(backend_registration._DummyBackendModule):
    def get_amp_supported_dtype(self):
        return [torch.bfloat16]

    def get_rng_state(self, *_):
        return torch.get_rng_state()


backend_registration._setup_privateuseone_for_python_backend("pretend", backend_module=_Backend())
DEVICE = torch.device("pretend", 0)
_ACTIVE: list["Device"] = []


class MixedDevices(AssertionError):
    """An operation has tensors of two devices."""


class _Placed(torch.Tensor):
    """A tensor on the device; ``held`` has its values."""

    @staticmethod
    def __new__(cls, held):
        made = torch.Tensor._make_wrapper_subclass(
            cls, held.shape, strides=held.stride(), storage_offset=held.storage_offset(),
            dtype=held.dtype, device=DEVICE,
        )  # fmt: skip
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})

    def tolist(self):
        _note("tolist")
        return self.held.tolist()

    def __repr__(self, **_):
        return f"{type(self).__name__}({self.held!r})"


class Device(TorchDispatchMode):
    """The device while it is in use; ``waits`` counts what the host waited for."""

    def __init__(self):
        super().__init__()
        self.waits: Counter[str] = Counter()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return _run(func, args, kwargs or {})


@contextmanager
def pretend_device() -> Iterator[Device]:
    """Make tensors with ``device=DEVICE`` possible, on one thread."""
    make, make_like = torch.tensor, torch.empty_like

    def tensor(data, *, device=None, **options):
        made = make(data, **options)
        return made if device is None else made.to(device)

    def empty_like(other, *, pin_memory=False, **options):
        made = make_like(other, **options)
        if pin_memory:  # the host need not wait for a copy that goes there
            made.pinned = True
        return made

    with (
        torch.autograd.set_multithreading_enabled(False),
        mock.patch("torch.inference_mode", torch.no_grad),  # it knows no tensors of our kind
        mock.patch("torch.tensor", tensor),
        mock.patch("torch.empty_like", empty_like),
        Device() as device,
    ):
        _ACTIVE.append(device)
        try:
            yield device
        finally:
            _ACTIVE.pop()


def _note(what: str) -> None:
    if _ACTIVE:
        _ACTIVE[-1].waits[what] += 1


def _run(func, args, kwargs):
    flat, structure = tree_flatten((args, kwargs))
    tensors = [x for x in flat if isinstance(x, torch.Tensor)]
    placed = [x for x in tensors if isinstance(x, _Placed)]
    here = [x for x in tensors if not isinstance(x, _Placed)]
    kind, target = func.overloadpacket, kwargs.get("device")
    if placed and kind not in _COPYING and any(x.dim() for x in here):  # numbers may come along
        raise MixedDevices(f"{func}: {[(x.device.type, tuple(x.shape)) for x in tensors]}")
    if placed and (kind in _READING or _is_mask(kind, args)):
        _note(str(func))
    if kind in _COPYING and _crosses(func, args, target):
        to_device = isinstance(args[0], _Placed) if kind is aten.copy_ else not placed
        asynchronous = kwargs.get("non_blocking") or (kind is aten.copy_ and True in args[2:])
        if not (asynchronous and (to_device or hasattr(args[0], "pinned"))):
            _note(f"{func}, {'to' if to_device else 'from'} the device")
    plain = [
        x.held if isinstance(x, _Placed)
        else torch.device("cpu") if isinstance(x, torch.device) else x
        for x in flat
    ]  # fmt: skip
    args_here, kwargs_here = tree_unflatten(plain, structure)
    result = func(*args_here, **kwargs_here)
    returns = func._schema.returns
    if not returns:
        return None
    if returns[0].alias_info is not None and returns[0].alias_info.is_write:  # in place
        return kwargs["out"] if "out" in kwargs else args[0]
    on_device = bool(placed) if target is None else torch.device(target).type == DEVICE.type
    return tree_map_only(torch.Tensor, _Placed, result) if on_device else result


def _is_mask(kind, args) -> bool:
    """Whether an operation counts the true elements of a mask."""
    return kind in _INDEXING and any(x is not None and x.dtype == torch.bool for x in args[1])


def _crosses(func, args, target) -> bool:
    """Whether a copy leaves its device."""
    if func.overloadpacket is aten.copy_:
        return isinstance(args[0], _Placed) != isinstance(args[1], _Placed)
    there = isinstance(args[0], _Placed)
    return target is not None and there != (torch.device(target).type == DEVICE.type)
