"""Dropout with a quarter of the random bits.

On an AMD processor PyTorch draws 64 random bits per element, serially, and on every CPU it keeps a
mask of 32 bits per element for the backward pass. Together they take several percent of a training
step. Sixteen bits decide "keep" or "drop" well enough, and the mask needs eight.
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer.fast.private import may_be_transformed

_STEPS = 1 << 16


class Dropout(nn.Dropout):
    """``nn.Dropout``, faster on a CPU: there the probability is rounded to a multiple of 1 / 65536.

    Kept elements are divided by the probability of keeping them, so that the mean stays the same.
    On other devices, and where PyTorch traces the operation, it is ``nn.Dropout`` itself.
    """

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Set each element to zero with probability ``p`` in training; do nothing otherwise."""
        if not self.training or self.p == 0:
            return x
        dropped = round(self.p * _STEPS)
        if (
            torch.compiler.is_compiling()
            or may_be_transformed()
            or x.device.type != "cpu"
            or self.inplace
            or dropped == _STEPS
        ):
            return super().forward(x)
        return _Dropout.apply(x, dropped)


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, dropped: int) -> Tensor:
        # Four numbers of 16 bits in one of 64, negative ones included.
        bits = torch.empty(-(-x.numel() // 4), dtype=torch.int64, device=x.device)
        bits.random_(-(2**63), None)
        numbers = bits.view(torch.int16)[: x.numel()].view(x.shape)
        kept = (numbers >= dropped - _STEPS // 2).view(torch.uint8)  # faster than bool
        ctx.save_for_backward(kept)
        ctx.scale = _STEPS / (_STEPS - dropped)
        return (x * kept).mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (kept,) = ctx.saved_tensors
        return (gradient * kept).mul_(ctx.scale), None
