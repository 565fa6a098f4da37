"""Segment recurrence with relative positions: a miniature Transformer-XL (Dai et al. 2019)."""

from collections.abc import Callable
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer.model.attention import masked_softmax
from transformer.model.layers import PositionwiseFeedForward, Residual
from transformer.model.positional import sinusoidal_table

SegmentPositions = Literal["relative", "restarting", "continuing"]

# Maps the distances of the keys behind the queries, (T, M + T), to a mask.
Pattern = Callable[[Tensor], Tensor]


def relative_shift(scores: Float[Tensor, "*batch T S"]) -> Float[Tensor, "*batch T S"]:
    """Convert scores by distance into scores by key: pad a column and reshape (Dai et al. 2019)."""
    *batch, queries, keys = scores.shape
    wider = F.pad(scores, (1, 0)).reshape(*batch, keys + 1, queries)
    return wider[..., 1:, :].reshape(*batch, queries, keys)


class RelativeAttention(nn.Module):
    """Self-attention with scores (q + u)^T k + (q + v)^T W_R R(distance), over sqrt(d_k)."""

    def __init__(self, d_model: int, num_heads: int, relative: bool = True):
        super().__init__()
        self.num_heads, self.relative = num_heads, relative
        self.query = nn.Linear(d_model, d_model, bias=False)
        self.key_value = nn.Linear(d_model, 2 * d_model, bias=False)
        self.out = nn.Linear(d_model, d_model, bias=False)
        if relative:
            self.distance = nn.Linear(d_model, d_model, bias=False)
            self.content_bias = nn.Parameter(torch.zeros(num_heads, 1, d_model // num_heads))
            self.distance_bias = nn.Parameter(torch.zeros(num_heads, 1, d_model // num_heads))

    def forward(
        self,
        x: Float[Tensor, "B T d_model"],
        memory: Float[Tensor, "B M d_model"],
        mask: Bool[Tensor, "T S"],
    ) -> Float[Tensor, "B T d_model"]:
        """Let each position of a segment attend to the memory and to the segment."""
        context = torch.cat([memory, x], dim=1)
        query = self._heads(self.query(x))
        key, value = (self._heads(part) for part in self.key_value(context).chunk(2, dim=-1))
        if self.relative:
            table = sinusoidal_table(context.size(1), x.size(-1)).flip(0).to(x)
            distance = self._heads(self.distance(table)[None])
            by_content = (query + self.content_bias) @ key.mT
            by_distance = relative_shift((query + self.distance_bias) @ distance.mT)
            scores = by_content + by_distance
        else:
            scores = query @ key.mT
        weights = masked_softmax(scores / query.size(-1) ** 0.5, mask)
        return self.out((weights @ value).transpose(1, 2).flatten(2))

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.num_heads, -1)).transpose(1, 2)


class SegmentLayer(nn.Module):
    """A decoder layer without cross-attention, whose self-attention also sees a memory."""

    def __init__(self, d_model: int, d_ff: int, num_heads: int, relative: bool = True):
        super().__init__()
        self.attention = RelativeAttention(d_model, num_heads, relative)
        self.feed_forward = PositionwiseFeedForward(d_model, d_ff)
        self.residuals = nn.ModuleList(Residual(d_model, dropout=0.0) for _ in range(2))

    def forward(
        self,
        x: Float[Tensor, "B T d_model"],
        memory: Float[Tensor, "B M d_model"],
        mask: Bool[Tensor, "T S"],
    ) -> Float[Tensor, "B T d_model"]:
        """Attend to memory and segment, then transform each position."""
        x = self.residuals[0](x, lambda y: self.attention(y, memory, mask))
        return self.residuals[1](x, self.feed_forward)


class SegmentModel(nn.Module):
    """A model that labels a stream segment by segment; ``pattern`` selects visible distances."""

    def __init__(
        self,
        vocab_size: int,
        d_model: int = 32,
        num_heads: int = 2,
        num_layers: int = 1,
        memory_length: int = 0,
        positions: SegmentPositions = "relative",
        pattern: Pattern | None = None,
    ):
        super().__init__()
        self.memory_length, self.positions, self.pattern = memory_length, positions, pattern
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.layers = nn.ModuleList(
            SegmentLayer(d_model, 2 * d_model, num_heads, positions == "relative")
            for _ in range(num_layers)
        )
        self.output = nn.Linear(d_model, vocab_size)

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        memories: list[Float[Tensor, "B M d_model"]] | None = None,
        start: int = 0,
    ) -> tuple[Float[Tensor, "B T V"], list[Float[Tensor, "B kept d_model"]]]:
        """Label the positions of a segment."""
        x = self.embedding(tokens)
        if self.positions != "relative":
            first = start if self.positions == "continuing" else 0
            x = x + sinusoidal_table(first + x.size(1), x.size(-1))[first:].to(x)
        if memories is None:
            memories = [x.new_zeros(len(x), 0, x.size(-1))] * len(self.layers)
        mask = self.mask(x.size(1), memories[0].size(1)).to(x.device)
        kept = []
        for layer, memory in zip(self.layers, memories, strict=True):
            seen = torch.cat([memory, x], dim=1).detach()
            kept.append(seen[:, max(0, seen.size(1) - self.memory_length) :])
            x = layer(x, memory, mask)
        return self.output(x), kept

    def mask(self, length: int, memory: int) -> Bool[Tensor, "T S"]:
        """Make the causal mask of a segment, restricted by the pattern."""
        ahead = torch.arange(memory + length)
        distance = memory + torch.arange(length)[:, None] - ahead
        visible = distance >= 0
        return visible if self.pattern is None else visible & self.pattern(distance)
