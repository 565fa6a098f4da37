"""Sparse attention: as a mask, which saves nothing, and in blocks, which saves time and memory."""

from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer.model.attention import scaled_dot_product_attention
from transformer_book.studies.layer_types.reach import self_attention

SparsePattern = Literal["local", "strided", "both"]


def local_mask(length: int, window: int) -> Bool[Tensor, "T T"]:
    """Let each position see the last ``window`` positions, itself included; True = may attend."""
    distance = _distances(length)
    return (distance >= 0) & (distance < window)


def strided_mask(length: int, stride: int) -> Bool[Tensor, "T T"]:
    """Let each position see itself and every ``stride``-th before it; True = may attend."""
    distance = _distances(length)
    return (distance >= 0) & (distance % stride == 0)


def local_attention(
    query: Float[Tensor, "*batch T d_k"],
    key: Float[Tensor, "*batch T d_k"],
    value: Float[Tensor, "*batch T d_v"],
    window: int,
) -> Float[Tensor, "*batch T d_v"]:
    """Attend as under :func:`local_mask` in blocks as long as the window, without masked scores."""
    length = query.size(-2)
    query, key, value = (_blocks(x, window) for x in (query, key, value))
    key, value = (torch.cat([_one_later(x), x], dim=-2) for x in (key, value))
    distance = window + _distances(window, 2 * window)
    visible = (distance >= 0) & (distance < window)
    visible = visible.repeat(query.size(-3), 1, 1)  # (blocks, window, 2 * window)
    visible[0, :, :window] = False  # there is no block before the first
    heads = scaled_dot_product_attention(query, key, value, visible)
    return heads.flatten(-3, -2)[..., :length, :]


def strided_attention(
    query: Float[Tensor, "*batch T d_k"],
    key: Float[Tensor, "*batch T d_k"],
    value: Float[Tensor, "*batch T d_v"],
    stride: int,
) -> Float[Tensor, "*batch T d_v"]:
    """Attend as under :func:`strided_mask`, each column of rows of ``stride`` positions alone."""
    length = query.size(-2)
    query, key, value = (_blocks(x, stride).transpose(-3, -2) for x in (query, key, value))
    heads = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    return heads.transpose(-3, -2).flatten(-3, -2)[..., :length, :]


class SparseAttention(nn.Module):
    """Causal self-attention in blocks: "local", "strided", or "both", each by half of the heads."""

    def __init__(self, d_model: int, num_heads: int, window: int, pattern: SparsePattern = "local"):
        super().__init__()
        self.attention = self_attention(d_model, num_heads)
        self.window = window
        self.local_heads = dict(local=num_heads, strided=0, both=num_heads // 2)[pattern]

    def forward(self, x: Float[Tensor, "B T d_model"]) -> Float[Tensor, "B T d_model"]:
        """Let every position attend to those of the pattern."""
        query = self.attention.project_query(x)
        key, value = self.attention.project_memory(x)
        seen = [
            attend(query[:, some], key[:, some], value[:, some], self.window)
            for attend, some in (
                (local_attention, slice(0, self.local_heads)),
                (strided_attention, slice(self.local_heads, None)),
            )
            if query[:, some].size(1)
        ]
        return self.attention.output_projection(torch.cat(seen, dim=1).transpose(1, 2).flatten(2))

    def mask(self, length: int) -> Bool[Tensor, "H T T"]:
        """Make the mask with which full attention gives the same output; True = may attend."""
        strided_heads = self.attention.num_heads - self.local_heads
        return torch.cat(
            [
                local_mask(length, self.window).expand(self.local_heads, -1, -1),
                strided_mask(length, self.window).expand(strided_heads, -1, -1),
            ]
        )


def _distances(queries: int, keys: int | None = None) -> Tensor:
    return torch.arange(queries)[:, None] - torch.arange(queries if keys is None else keys)


def _blocks(x: Tensor, size: int) -> Tensor:
    """Reshape (*batch, T, d) to (*batch, blocks, size, d), padded with zeros at the end."""
    return F.pad(x, (0, 0, 0, -x.size(-2) % size)).unflatten(-2, (-1, size))


def _one_later(x: Tensor) -> Tensor:
    """Shift the blocks by one place, with zeros first."""
    return F.pad(x, (0, 0, 0, 0, 1, 0))[..., :-1, :, :]
