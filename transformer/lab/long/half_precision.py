"""Half precision, emulated: what matrix products in 16 bits do to gradients and to training.

On a GPU, autocast multiplies matrices in a half format, sums within a product in float32, and
leaves all else in float32. A CPU has no fast float16, so the products are taken in float32 here,
and what goes in and comes out is rounded. What is lost is the same.

Reference: Micikevicius et al. 2018.
"""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from transformer.lab.long.delayed_echo import NOTHING, Echo
from transformer.lab.long.segment_recurrence import SegmentModel
from transformer.training.progress import progress

#: Powers of two that gradients are counted by. What lies beyond is counted with the last of them.
LOWEST, HIGHEST = -60, 20

_PRODUCTS = {
    F.linear,
    F.scaled_dot_product_attention,
    torch.matmul,
    Tensor.matmul,
    Tensor.__matmul__,
}


class HalfPrecision(TorchFunctionMode):
    """Rounds the inputs and outputs of matrix products, and their gradients, to a half format.

    Use it as a context around the forward pass. A number beyond the format's largest becomes
    infinite, one below half its smallest becomes 0, as in the format itself.

    Args:
        dtype: ``torch.float16`` or ``torch.bfloat16``.
        count: also count the gradients by their size, which takes time.

    Attributes:
        sizes: how many numbers of gradients lay in [2^e, 2^(e + 1)) before they were rounded, for
            each e from ``LOWEST`` to ``HIGHEST``, if counted. Zeros and numbers that are not finite
            are left out.
        vanished: how many became 0 that were not.
        overflowed: how many became infinite.

    Reference: Micikevicius et al. 2018.
    """

    def __init__(self, dtype: torch.dtype, count: bool = False):
        super().__init__()
        self.dtype, self.count = dtype, count
        self.sizes = torch.zeros(HIGHEST - LOWEST + 1, dtype=torch.long)
        self.vanished = self.overflowed = 0

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func not in _PRODUCTS:
            return func(*args, **kwargs)
        return self._round(func(*map(self._round, args), **kwargs))

    def _round(self, x: Any) -> Any:
        if not isinstance(x, Tensor) or not x.is_floating_point():
            return x
        return _Rounded.apply(x, self)

    def note(self, before: Tensor, after: Tensor) -> None:
        """Count a gradient that was rounded.

        Args:
            before: as it came.
            after: rounded, of the same shape.

        Reference: Micikevicius et al. 2018.
        """
        found = (before != 0) & before.isfinite()
        exponents = before[found].frexp().exponent.long() - 1
        places = exponents.clamp(LOWEST, HIGHEST) - LOWEST
        self.sizes += places.bincount(minlength=len(self.sizes))
        self.vanished += int((found & (after == 0)).sum())
        self.overflowed += int((found & after.isinf()).sum())


class _Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, mode: HalfPrecision) -> Tensor:
        ctx.mode = mode
        return x.to(mode.dtype).to(x.dtype)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        rounded = gradient.to(ctx.mode.dtype).to(gradient.dtype)
        if ctx.mode.count:
            ctx.mode.note(gradient, rounded)
        return rounded, None


@dataclass(frozen=True)
class HalfRun:
    """How a training run went.

    Args:
        losses: of each step, in nats a position.
        scales: what the loss was multiplied with in each step.
        skipped: steps that were not taken, because a gradient was not finite.
    """

    losses: list[float]
    scales: list[float]
    skipped: int

    @property
    def final(self) -> float:
        """Mean loss of the last twenty steps."""
        return sum(self.losses[-20:]) / len(self.losses[-20:])


def train_in_half(
    dtype: torch.dtype | None,
    step_tokens: int = 0,
    scale: float | None = None,
    keep_master: bool = True,
    seed: int = 0,
    steps: int = 150,
    rate: float = 5e-3,
) -> HalfRun:
    """Train a small model to repeat what it read five positions ago, its products in half.

    The loss is the mean over all positions of a step. A step may be larger than the batch that is
    computed: then the batch is one part of the step, its loss divided by the positions of all
    parts, and the parts that are not computed are taken to be like it. So the size of the step
    changes nothing but the size of the numbers on the way back.

    Args:
        dtype: of the products; None leaves all in float32.
        step_tokens: positions that the mean is taken over; 0 takes those of the batch.
        scale: of the loss at first; PyTorch's ``GradScaler`` then changes it as it sees fit. None
            does not scale.
        keep_master: keep the weights in float32. If False they are rounded after each step.
        seed: of weights and data.
        steps: optimiser steps.
        rate: of Adam, after a climb of a tenth of the steps.

    Paper: section 5.3, in other formats
    """
    torch.manual_seed(seed)
    model, task = SegmentModel(8, num_layers=1), Echo(delay=5)
    weights = list(model.parameters())
    optimizer = torch.optim.Adam(weights, lr=rate, betas=(0.9, 0.98), eps=1e-9)
    scaler = torch.amp.GradScaler("cpu", init_scale=scale or 1.0, enabled=scale is not None)
    generator = torch.Generator().manual_seed(seed)
    losses, scales, skipped = [], [], 0
    for step in progress(range(1, steps + 1)):
        tokens, labels = task.draw(16, 21, generator)
        with nullcontext() if dtype is None else HalfPrecision(dtype):
            logits, _ = model(tokens)
        real = labels != NOTHING
        loss = F.cross_entropy(logits[real], labels[real], reduction="sum")
        share = int(real.sum()) / (step_tokens or int(real.sum()))
        losses.append(loss.item() / int(real.sum()))
        scales.append(scaler.get_scale())
        for group in optimizer.param_groups:
            group["lr"] = rate * min(1.0, 10 * step / steps)
        optimizer.zero_grad()
        scaler.scale(loss / int(real.sum()) * share).backward()
        scaler.unscale_(optimizer)
        gradients = [weight.grad for weight in weights if weight.grad is not None]
        for gradient in gradients:
            gradient.mul_(1 / share)
        taken = all(bool(gradient.isfinite().all()) for gradient in gradients)
        skipped += not taken
        if scaler.is_enabled() or taken:
            scaler.step(optimizer)
        scaler.update()
        if not keep_master and dtype is not None:
            _round(weights, dtype)
    return HalfRun(losses, scales, skipped)


@torch.no_grad()
def _round(weights: list[nn.Parameter], dtype: torch.dtype) -> None:
    for weight in weights:
        weight.copy_(weight.to(dtype))


def lost_updates(weights: Float[Tensor, "..."], update: float, dtype: torch.dtype) -> float:
    """Return the share of weights that a step of a given length leaves as they were.

    Args:
        weights: any number of them; they are rounded to the format first.
        update: length of the step, taken towards zero and away from it in turn.
        dtype: the format that the weights are kept in.

    Returns:
        A share in [0, 1].

    Reference: Micikevicius et al. 2018.
    """
    kept = weights.detach().flatten().to(dtype)
    signs = torch.ones(len(kept))
    signs[::2] = -1
    moved = (kept.float() + signs * update).to(dtype)
    return (moved == kept).float().mean().item()
