"""The matrix product of a linear layer, by the faster of PyTorch's two libraries.

On a CPU PyTorch multiplies float32 matrices with MKL, which does not use the 512-bit units of an
AMD processor. oneDNN, which PyTorch includes as well, uses them and takes about half the time.
Everywhere else, and where PyTorch traces the product (compiling, exporting, counting), it is
``F.linear``. Both sum in float32, in different orders.
``torch.backends.mkldnn.flags(enabled=False)`` selects ``F.linear`` everywhere.
"""

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from transformer.fast.private import (
    has_one_dnn_product,
    may_be_transformed,
    may_be_watched,
    one_dnn_product,
)

# Smaller products are bound by memory; MKL is faster there.
_FEWEST_MULTIPLICATIONS = 1 << 20


def linear(
    x: Float[Tensor, "*batch features"],
    weight: Float[Tensor, "out features"],
    bias: Float[Tensor, " out"] | None = None,
) -> Float[Tensor, "*batch out"]:
    """Compute x W^T + b for row vectors x."""
    if _HAS_IDLE_UNITS and _is_plain(x, weight):
        if torch.is_grad_enabled():
            return _OneDnnLinear.apply(x, weight, bias)
        return one_dnn_product(x, weight, bias)
    return F.linear(x, weight, bias)


class Linear(nn.Linear):
    """``nn.Linear`` whose product is :func:`linear`."""

    def forward(self, x: Float[Tensor, "*batch features"]) -> Float[Tensor, "*batch out"]:
        """Compute x W^T + b."""
        return linear(x, self.weight, self.bias)


class _OneDnnLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return one_dnn_product(x, weight, bias)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        wanted_x, wanted_weight, wanted_bias = ctx.needs_input_grad
        rows, inputs = gradient.flatten(0, -2), x.flatten(0, -2)
        grad_x = linear(gradient, weight.t()) if wanted_x else None
        grad_weight = None
        if wanted_weight and rows.size(1) <= inputs.size(1):
            grad_weight = linear(rows.t(), inputs.t())
        elif wanted_weight:  # oneDNN copies the first factor, so pass the smaller one first
            grad_weight = linear(inputs.t(), rows.t()).t()
        return grad_x, grad_weight, rows.sum(0) if wanted_bias else None


def _is_plain(x: Tensor, weight: Tensor) -> bool:
    """Whether the product is large, of float32 on a CPU, and not traced by PyTorch."""
    return (
        not torch.compiler.is_compiling()  # first: no branch on a size while compiling
        and x.numel() * weight.size(0) >= _FEWEST_MULTIPLICATIONS
        and x.dim() > 1
        and not may_be_watched()
        and not may_be_transformed()
        and bool(torch.backends.mkldnn.enabled)
        and not torch.is_autocast_enabled("cpu")
        and x.device.type == "cpu"
        and x.dtype == weight.dtype == torch.float32
    )


def _has_idle_units() -> bool:
    """Whether this is an AMD processor with 512-bit units, and oneDNN is there to use them."""
    cpu = Path("/proc/cpuinfo")
    return (
        torch.backends.mkldnn.is_available()
        and torch.backends.cpu.get_cpu_capability() == "AVX512"
        and cpu.exists()
        and "AuthenticAMD" in cpu.read_text()[:1000]
        and has_one_dnn_product()
    )


_HAS_IDLE_UNITS = _has_idle_units()
