"""Memory, time and gradient of a training step on long sequences, with ways to save memory."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from transformer.model.attention import masked_softmax
from transformer.model.layers import PositionwiseFeedForward, Residual
from transformer.model.masks import causal_mask
from transformer_book.studies.lacking import Missing, Runs, lacking
from transformer_book.studies.layer_types.operations import peak_bytes
from transformer_book.studies.layer_types.reach import self_attention
from transformer_book.studies.sparse.segment_recurrence import SegmentLayer
from transformer_book.studies.sparse.sparse_attention import SparseAttention

AttentionKind = Literal["written out", "fused", "masked to a window", "local", "both", "segments"]


@dataclass(frozen=True)
class Technique:
    """A way to take a training step."""

    #: "written out" stores the weights, "fused" does not; "masked to a window" stores all weights
    #: but uses few; "local" and "both" compute a pattern in blocks, see
    #: :class:`~transformer_book.studies.sparse.sparse_attention.SparseAttention`; "segments" reads
    #: segment by segment with a memory of one segment, and a backward pass for each.
    attention: AttentionKind = "written out"
    parts: int = 1  #: number of parts of the batch, whose gradients are accumulated.
    checkpointing: bool = False  #: whether to store only each layer's input and recompute the rest.
    half: bool = False


#: The techniques of chapter 24. A step has four sequences.
TECHNIQUES: dict[str, Technique] = {
    "plain: weights written out": Technique(),
    "half precision (bf16)": Technique(half=True),
    "accumulation, 4 parts": Technique(parts=4),
    "checkpointing": Technique(checkpointing=True),
    "window by a mask": Technique("masked to a window"),
    "fused attention": Technique("fused"),
    "window in blocks": Technique("local"),
    "window and stride in blocks": Technique("both"),
    "segment recurrence": Technique("segments"),
}


@dataclass(frozen=True)
class StepCost:
    """The cost of a training step."""

    peak: int  #: peak memory of tensors in bytes, without weights and inputs.
    seconds: float  #: CPU seconds of this process, the minimum over the repeats.
    gradient: Float[Tensor, " weights"]


class CausalAttention(nn.Module):
    """Causal self-attention: fused, or with stored weights and perhaps a window of positions."""

    def __init__(self, d_model: int, num_heads: int, fused: bool, window: int | None = None):
        super().__init__()
        self.attention, self.fused, self.window = self_attention(d_model, num_heads), fused, window

    def forward(self, x: Float[Tensor, "B T d_model"]) -> Float[Tensor, "B T d_model"]:
        """Let every position attend to itself and earlier ones."""
        query = self.attention.project_query(x)
        key, value = self.attention.project_memory(x)
        if self.fused:  # without a mask, which would have n^2 entries
            heads = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        else:
            mask = causal_mask(x.size(1))
            if self.window is not None:
                mask = mask & ~causal_mask(x.size(1)).tril(-self.window)
            scores = query @ key.mT / query.size(-1) ** 0.5
            heads = masked_softmax(scores, mask) @ value
        return self.attention.output_projection(heads.transpose(1, 2).flatten(2))


class LongStack(nn.Module):
    """Layers of attention and feed-forward network, for a technique."""

    def __init__(
        self,
        technique: Technique,
        d_model: int = 64,
        num_heads: int = 4,
        depth: int = 2,
        window: int = 32,
    ):
        super().__init__()
        self.technique, self.window = technique, window
        kind = technique.attention

        def attention() -> nn.Module:
            if kind in ("local", "both"):
                return SparseAttention(d_model, num_heads, window, kind)
            seen = window if kind == "masked to a window" else None
            return CausalAttention(d_model, num_heads, kind == "fused", seen)

        self.layers = nn.ModuleList(
            SegmentLayer(d_model, 2 * d_model, num_heads)
            if kind == "segments"
            else _Layer(attention(), d_model)
            for _ in range(depth)
        )

    def step(self, x: Float[Tensor, "B T d_model"], target: Float[Tensor, "B T d_model"]) -> None:
        """Accumulate the gradient of the mean of output times target."""
        rows = len(x) // self.technique.parts
        for some, wanted in zip(x.split(rows), target.split(rows), strict=True):
            with torch.autocast("cpu", torch.bfloat16, enabled=self.technique.half):
                for start, output in self._outputs(some):
                    part = wanted[:, start : start + output.size(1)]
                    (torch.sum(output.float() * part) / target.numel()).backward()

    def _outputs(self, x: Tensor) -> Iterator[tuple[int, Tensor]]:
        if self.technique.attention == "segments":
            yield from self._segments(x)
            return
        for layer in self.layers:
            if self.technique.checkpointing:
                x = checkpoint(layer, x, use_reentrant=False)
            else:
                x = layer(x)
        yield 0, x

    def _segments(self, x: Tensor) -> Iterator[tuple[int, Tensor]]:
        memories = [x[:, :0]] * len(self.layers)
        for start in range(0, x.size(1), self.window):
            y, kept = x[:, start : start + self.window], []
            length, before = y.size(1), memories[0].size(1)
            mask = torch.ones(length, before + length, dtype=torch.bool).tril(before)
            for layer, memory in zip(self.layers, memories, strict=True):
                kept.append(y.detach())
                y = layer(y, memory, mask)
            memories = kept
            yield start, y


class _Layer(nn.Module):
    def __init__(self, attention: nn.Module, d_model: int):
        super().__init__()
        self.attention, self.feed_forward = attention, PositionwiseFeedForward(d_model, 2 * d_model)
        self.residuals = nn.ModuleList(Residual(d_model, dropout=0.0) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        x = self.residuals[0](x, self.attention)
        return self.residuals[1](x, self.feed_forward)


def measure_step(
    technique: Technique,
    length: int,
    batch: int = 4,
    d_model: int = 64,
    repeats: int = 2,
    seed: int = 0,
    **sizes: int,
) -> StepCost:
    """Measure the cost of a training step."""
    torch.manual_seed(seed)
    x, target = torch.randn(2, batch, length, d_model)
    stack = LongStack(technique, d_model, **sizes)
    weights = list(stack.parameters())
    peak = peak_bytes(lambda: stack.step(x, target), (x, *weights))
    gradient = torch.cat([w.grad.flatten() for w in weights if w.grad is not None])
    seconds = []
    for _ in range(repeats):
        stack.zero_grad()
        started = time.process_time()
        stack.step(x, target)
        seconds.append(time.process_time() - started)
    return StepCost(peak, min(seconds), gradient)


RECORD = Path(__file__).parent / "long_steps.json"
LENGTHS = (80, 160, 320, 640)
REPEATS = 9  # of the longest; the shorter ones are measured once

#: What the record says before its runs.
HEADING = dict(lengths=LENGTHS, batch=4, d_model=64, num_heads=4, depth=2, window=32)


def missing(runs: Runs) -> Missing:
    """Train what a record lacks, and yield each run with a line about it."""
    # A repeat measures all techniques in turn, so that ratios of its times compare like with like.
    shorter = [*lacking(runs, length=LENGTHS[:-1], repeat=[0], technique=TECHNIQUES)]
    longest = [*lacking(runs, length=LENGTHS[-1:], repeat=range(REPEATS), technique=TECHNIQUES)]
    for case in shorter + longest:
        cost = measure_step(TECHNIQUES[case["technique"]], case["length"])
        line = f"{case}: {cost.peak / 1e6:.1f} MB, {cost.seconds:.3f} s"
        yield case | dict(peak=cost.peak, seconds=round(cost.seconds, 5)), line
