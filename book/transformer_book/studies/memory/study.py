"""Emulated half precision: what 16-bit products do to gradients and training."""

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from transformer.data.progress import progress
from transformer_book.studies.lacking import Missing, Runs, lacking
from transformer_book.studies.sparse.delayed_echo import NOTHING, Echo
from transformer_book.studies.sparse.segment_recurrence import SegmentModel

#: Powers of two by which gradients are counted; those beyond are counted with the last one.
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

    Use it as a context around the forward pass. As in the format itself, numbers that are too
    large become infinite, and numbers that are too small become 0.

    Attributes:
        sizes: number of gradient entries in [2^e, 2^(e + 1)) before rounding, for each e from
            ``LOWEST`` to ``HIGHEST``, if counted; without zeros and non-finite entries. A gradient
            that one product returns and the next receives is counted at both.
        vanished: number of nonzero entries that became 0. An entry counts at the first product
            only, because it is 0 at those that follow.
        overflowed: number of finite entries that became infinite.
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
        """Count the entries of a gradient before and after rounding."""
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
    """The course of a training run."""

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
    """Train in half precision to repeat a token; a loss is divided by the step's positions."""
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
    """Return the share of weights that a step of a given length leaves unchanged."""
    kept = weights.detach().flatten().to(dtype)
    signs = torch.ones(len(kept))
    signs[::2] = -1
    moved = (kept.float() + signs * update).to(dtype)
    return (moved == kept).float().mean().item()


RECORD = Path(__file__).parent / "record.json"

_MANY = 2**22
#: The arguments of :func:`train_in_half` for each way to train, by its name, which gives the format
#: and the positions in the mean of a step. The last way has the mean of its own batch.
WAYS: dict[str, dict[str, Any]] = {
    "float32, 4 million": dict(dtype=None, step_tokens=_MANY),
    "float16, 25,000": dict(dtype=torch.float16, step_tokens=25_000),
    "float16, 1 million": dict(dtype=torch.float16, step_tokens=2**20),
    "float16, 4 million": dict(dtype=torch.float16, step_tokens=_MANY),
    "float16, 4 million, loss × 2¹⁶": dict(dtype=torch.float16, step_tokens=_MANY, scale=2.0**16),
    "bfloat16, 4 million": dict(dtype=torch.bfloat16, step_tokens=_MANY),
    "bfloat16, 256 (one batch), weights too": dict(dtype=torch.bfloat16, keep_master=False),
}
SEEDS = (1, 2, 3, 4, 5)
STEPS = 300

#: What the record says before its runs.
HEADING = dict(steps=STEPS, task="repeat the symbol five positions before, one of eight")


def missing(runs: Runs) -> Missing:
    """Train what a record lacks, and yield each run with a line about it."""
    for case in lacking(runs, seed=SEEDS, way=WAYS):
        loss = train_in_half(seed=case["seed"], steps=STEPS, **WAYS[case["way"]]).final
        yield case | dict(loss=loss), f"{case}: {loss:.5f}"
