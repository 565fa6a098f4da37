"""Count how often the host reads a value of a tensor, for which it waits on a GPU."""

from collections import Counter

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

READING = (
    *(Tensor.tolist, Tensor.numpy, Tensor.cpu, Tensor.__array__, Tensor.item, Tensor.__bool__),
    *(Tensor.__int__, Tensor.__float__, Tensor.nonzero, Tensor.masked_select, Tensor.unique),
    *(torch.nonzero, torch.masked_select, torch.unique, torch.equal),
)


class HostReads(TorchFunctionMode):
    """Count in ``reads`` what reads values, or makes a tensor whose size follows from values."""

    def __init__(self):
        super().__init__()
        self.reads: Counter[str] = Counter()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        chosen = args[1] if func is Tensor.__getitem__ else None
        by_mask = isinstance(chosen, Tensor) and chosen.dtype == torch.bool
        if func in READING or by_mask:
            self.reads[func.__name__] += 1
        return func(*args, **kwargs or {})
