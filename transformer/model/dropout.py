"""Dropout that needs a quarter of the random numbers.

On an AMD processor PyTorch draws a number of 64 bits for each element, one after the other, however
many threads there are, and on every CPU it keeps a mask of 32 bits for the backward pass: several
hundredths of a training step. (On Intel's it may draw with MKL; that was not measured.) Sixteen
bits say "keep" or "drop" well enough, and a mask of eight bits says it again.

Paper: section 5.4 (residual dropout)
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

_STEPS = 1 << 16


class Dropout(nn.Dropout):
    """``nn.Dropout``, faster on a CPU: there the probability is rounded to a multiple of 1 / 65536.

    What is kept is divided by the probability to be kept, so that its mean stays what it was. On
    other devices, and wherever PyTorch looks into the operation, it is ``nn.Dropout`` itself.

    Paper: section 5.4
    """

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        """Set each element to zero with probability ``p`` in training; do nothing otherwise.

        Paper: section 5.4
        """
        if not self.training or self.p == 0:
            return x
        dropped = round(self.p * _STEPS)
        if (
            torch.compiler.is_compiling()
            or torch._C._are_functorch_transforms_active()
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
        bits = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(2**63), None)
        numbers = bits.view(torch.int16)[: x.numel()].view(x.shape)
        kept = (numbers >= dropped - _STEPS // 2).view(torch.uint8)  # sooner than a product of bool
        ctx.save_for_backward(kept)
        ctx.scale = _STEPS / (_STEPS - dropped)
        return (x * kept).mul_(ctx.scale)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        (kept,) = ctx.saved_tensors
        return (gradient * kept).mul_(ctx.scale), None
