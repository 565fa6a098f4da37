"""No work on padding: the real positions of a batch, one after the other.

Only attention has to know which position belongs to which sentence. All else, and that is most of
the work, treats each position alone: it may as well get the real ones in one long row and never
see the padding. A batch of like lengths has little padding and is left as it is.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

# To gather and scatter costs a few hundredths of a step. Below this share of real positions it
# saves more.
_FULL = 0.9


class Packing:
    """Where the real positions of a padded batch are.

    Without arguments it stands for all of them: :meth:`pack` and :meth:`pad` return what they get.

    Args:
        rows: places of the N real positions in the flattened batch, ascending.
        shape: (B, T) of the padded batch.
    """

    def __init__(self, rows: Int[Tensor, "N"] | None = None, shape: tuple[int, int] = (0, 0)):
        self.rows, self.shape = rows, shape

    @classmethod
    def of(cls, ids: Int[Tensor, "B T"], pad_id: int = 0) -> "Packing":
        """Choose: the real positions of these ids, or all if nearly all are real.

        It is all of them as well where nobody :func:`may_look`.

        Args:
            ids: token ids.
            pad_id: the id that fills short sentences up.
        """
        if not may_look(ids):
            return cls()
        rows = (ids != pad_id).flatten().nonzero().flatten()
        return cls(rows, (len(ids), ids.size(1))) if len(rows) < _FULL * ids.numel() else cls()

    def pack(self, x: Float[Tensor, "*padded"]) -> Float[Tensor, "*packed"]:
        """Take the real positions: (B, T, features) becomes (N, features)."""
        return x if self.rows is None else _Pack.apply(x.flatten(0, 1), self.rows)

    def pad(self, x: Float[Tensor, "*packed"]) -> Float[Tensor, "*padded"]:
        """Put them back, with zeros at padding: (N, features) becomes (B, T, features)."""
        if self.rows is None:
            return x
        return _Pad.apply(x, self.rows, self.shape[0] * self.shape[1]).unflatten(0, self.shape)


def may_look(values: Tensor) -> bool:
    """Say whether a program may do different things for different numbers in a tensor.

    Not on a GPU, which would have to finish all else first and then wait for the answer. And not
    while PyTorch compiles, exports or vectorises: what it makes is for all numbers.

    Args:
        values: such as token ids or a mask, of any shape.
    """
    return (
        values.device.type == "cpu"
        and not torch.compiler.is_compiling()
        and not torch._C._are_functorch_transforms_active()
    )


# Each is the other's gradient. PyTorch's own gradient of a gather adds up, as rows might be taken
# twice, and that is much slower.
class _Pack(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.length = len(x)
        return x.index_select(0, rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _Pad.apply(gradient, *ctx.saved_tensors, ctx.length), None


class _Pad(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor, length: int) -> Tensor:
        ctx.save_for_backward(rows)
        return x.new_zeros(length, *x.shape[1:]).index_copy_(0, rows, x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _Pack.apply(gradient, *ctx.saved_tensors), None, None


#: Stands for all positions.
UNPACKED = Packing()
