"""Attention: a weighted mean of values, the weights made by comparing queries with keys.

Paper: section 3.2
"""

import math
from typing import Literal, overload

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer.model.linear import Linear, linear
from transformer.model.packing import UNPACKED, Packing, may_look
from transformer.model.positional import RotaryPositions


def masked_softmax(
    scores: Float[Tensor, "*batch T S"], mask: Bool[Tensor, "..."] | None = None
) -> Float[Tensor, "*batch T S"]:
    """Turn scores into weights that sum to 1 over the positions that may be attended to.

    A row with nothing to attend to has no meaningful weights: it gives zeros, not NaN.

    Args:
        scores: compatibility of each query with each key, any real number.
        mask: True = may attend; broadcastable to ``scores``.

    Returns:
        Weights in [0, 1], exactly 0 wherever the mask is False.

    Paper: section 3.2.1, Eq. (1)
    """
    if mask is None:
        return scores.softmax(dim=-1)
    blind = ~mask.any(dim=-1, keepdim=True)
    # softmax of a row of -inf is NaN, and so is its gradient. Let a blind row see everything
    # while the softmax is taken, then wipe it.
    weights = scores.masked_fill(~(mask | blind), -torch.inf).softmax(dim=-1)
    return weights.masked_fill(blind, 0.0)


@overload
def scaled_dot_product_attention(
    query: Float[Tensor, "*batch T d_k"],
    key: Float[Tensor, "*batch S d_k"],
    value: Float[Tensor, "*batch S d_v"],
    mask: Bool[Tensor, "..."] | None = None,
    dropout: float = 0.0,
    scale: float | None = None,
    need_weights: Literal[False] = False,
) -> Float[Tensor, "*batch T d_v"]: ...


@overload
def scaled_dot_product_attention(
    query: Float[Tensor, "*batch T d_k"],
    key: Float[Tensor, "*batch S d_k"],
    value: Float[Tensor, "*batch S d_v"],
    mask: Bool[Tensor, "..."] | None = None,
    dropout: float = 0.0,
    scale: float | None = None,
    *,
    need_weights: Literal[True],
) -> tuple[Float[Tensor, "*batch T d_v"], Float[Tensor, "*batch T S"]]: ...


def scaled_dot_product_attention(
    query: Float[Tensor, "*batch T d_k"],
    key: Float[Tensor, "*batch S d_k"],
    value: Float[Tensor, "*batch S d_v"],
    mask: Bool[Tensor, "..."] | None = None,
    dropout: float = 0.0,
    scale: float | None = None,
    need_weights: bool = False,
) -> Float[Tensor, "*batch T d_v"] | tuple[Tensor, Tensor]:
    """Compute softmax(Q K^T / sqrt(d_k)) V.

    Without ``need_weights`` the weights never exist as a whole: PyTorch's fused kernel makes the
    same numbers block by block, so that memory does not grow with T * S.

    Args:
        query: one row for each position that asks.
        key: one row for each position that is asked.
        value: what each of those positions has to give.
        mask: True = may attend; broadcastable to ``(*batch, T, S)``. A query that may attend to
            nothing gets an output of zeros.
        dropout: probability in [0, 1) of dropping a weight. 0 in the paper's translation models.
        scale: factor on the scores; 1 / sqrt(d_k) if None. 1.0 gives plain dot-product attention.
        need_weights: also return the weights, before dropout.

    Returns:
        The output, or (output, weights of shape ``(*batch, T, S)``).

    Paper: section 3.2.1, Eq. (1)
    """
    if need_weights:
        scale = 1 / math.sqrt(query.size(-1)) if scale is None else scale
        weights = masked_softmax(query @ key.transpose(-2, -1) * scale, mask)
        return F.dropout(weights, dropout) @ value, weights
    if mask is None:
        return F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, scale=scale)
    blind = _blind_queries(mask)
    visible = mask if blind is None else mask | blind  # as in masked_softmax
    visible = torch.atleast_2d(visible)  # the kernel insists on both last axes
    output = F.scaled_dot_product_attention(
        query, key, value, attn_mask=visible, dropout_p=dropout, scale=scale
    )
    return output if blind is None else output.masked_fill(blind, 0.0)


def _blind_queries(mask: Tensor) -> Tensor | None:
    """Mark the queries that may attend to nothing; None, which saves two copies, if none is."""
    blind = ~mask.any(dim=-1, keepdim=True)
    return None if may_look(blind) and not blind.any() else blind


class AdditiveAttention(nn.Module):
    """Attention whose score is a small network: v^T tanh(W_q q + W_k k).

    The paper's comparison for dot products. Every pair of query and key passes through the tanh,
    so a tensor of shape (T, S, d_hidden) exists where dot products need only (T, S).

    Args:
        d_query: size of a query.
        d_key: size of a key; it may differ from ``d_query``.
        d_hidden: size of the hidden layer.

    Paper: section 3.2.1 (additive attention)
    """

    def __init__(self, d_query: int, d_key: int, d_hidden: int):
        super().__init__()
        self.query_projection = Linear(d_query, d_hidden, bias=False)
        self.key_projection = Linear(d_key, d_hidden, bias=False)
        self.score = Linear(d_hidden, 1, bias=False)

    def forward(
        self,
        query: Float[Tensor, "*batch T d_query"],
        key: Float[Tensor, "*batch S d_key"],
        value: Float[Tensor, "*batch S d_v"],
        mask: Bool[Tensor, "..."] | None = None,
        need_weights: bool = False,
    ) -> Float[Tensor, "*batch T d_v"] | tuple[Tensor, Tensor]:
        """Attend; arguments and results as in :func:`scaled_dot_product_attention`.

        Paper: section 3.2.1
        """
        return self.attend(query, self.key_projection(key), value, mask, need_weights)

    def attend(
        self,
        query: Float[Tensor, "*batch T d_query"],
        projected_key: Float[Tensor, "*batch S d_hidden"],
        value: Float[Tensor, "*batch S d_v"],
        mask: Bool[Tensor, "..."] | None = None,
        need_weights: bool = False,
    ) -> Float[Tensor, "*batch T d_v"] | tuple[Tensor, Tensor]:
        """Attend to keys that went through ``key_projection`` before.

        A recurrent decoder asks the same keys at every step, and need not project them again.

        Paper: section 3.2.1
        """
        hidden = torch.tanh(
            self.query_projection(query).unsqueeze(-2) + projected_key.unsqueeze(-3)
        )
        weights = masked_softmax(self.score(hidden).squeeze(-1), mask)  # hidden: (*batch, T, S, d)
        output = weights @ value
        return (output, weights) if need_weights else output


class MultiHeadAttention(nn.Module):
    """Several attentions side by side, each on its own projections of the input.

    The projections W^Q, W^K and W^V of all heads are the rows of one matrix, in this order, so
    that self-attention needs one matrix product and not 3 x num_heads small ones.

    Args:
        d_model: size of input and output vectors.
        num_heads: number of heads h.
        d_k: size of a head's queries and keys; d_model / num_heads if None.
        d_v: size of a head's values; d_model / num_heads if None.
        bias: add a bias to each projection. The equations have none; the published code had.
        dropout: probability of dropping an attention weight in training.
        scale: factor on the scores; 1 / sqrt(d_k) if None.
        num_kv_heads: number of heads of keys and values, each shared by a group of query heads;
            num_heads, one for each, if None. Not in the paper.
        rotary: turns queries and keys in self-attention by their positions. Not in the paper.

    Raises:
        ValueError: if ``d_k`` or ``d_v`` is None and d_model is not divisible by num_heads, or if
            num_heads is not divisible by num_kv_heads.

    Paper: section 3.2.2
    """

    def __init__(
        self,
        d_model: int,
        num_heads: int,
        d_k: int | None = None,
        d_v: int | None = None,
        bias: bool = True,
        dropout: float = 0.0,
        scale: float | None = None,
        num_kv_heads: int | None = None,
        rotary: RotaryPositions | None = None,
    ):
        super().__init__()
        if None in (d_k, d_v) and d_model % num_heads:
            raise ValueError(
                f"d_model must be divisible by num_heads unless d_k and d_v are given: "
                f"got d_model={d_model}, num_heads={num_heads}"
            )
        self.d_model, self.num_heads = d_model, num_heads
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        if num_heads % self.num_kv_heads:
            raise ValueError(
                f"num_heads must be divisible by num_kv_heads, got {num_heads} and {num_kv_heads}"
            )
        self.d_k = d_model // num_heads if d_k is None else d_k
        self.d_v = d_model // num_heads if d_v is None else d_v
        self.dropout, self.scale, self.rotary = dropout, scale, rotary
        groups = self.num_kv_heads
        self.sizes = [num_heads * self.d_k, groups * self.d_k, groups * self.d_v]
        self.in_projection = Linear(d_model, sum(self.sizes), bias=bias)
        self.out_projection = Linear(num_heads * self.d_v, d_model, bias=bias)

    def forward(
        self,
        x: Float[Tensor, "*B_T d_model"],
        memory: Float[Tensor, "*B_S d_model"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
        maps: list[Float[Tensor, "B H T S"]] | None = None,
        packing: Packing = UNPACKED,
        memory_packing: Packing = UNPACKED,
    ) -> Float[Tensor, "*B_T d_model"]:
        """Let each position of ``x`` attend to ``memory``, or to ``x`` itself if it is None.

        Args:
            x: where the queries come from.
            memory: where the keys and values come from (encoder-decoder attention).
            mask: True = may attend; broadcastable to (B, num_heads, T, S).
            maps: a list to append this call's weights to, (B, num_heads, T, S) each.
            packing: of ``x``: (N, d_model) if it is packed, (B, T, d_model) if not.
            memory_packing: of ``memory``.

        Paper: sections 3.2.2 and 3.2.3
        """
        if memory is None:
            query, key, value = self.project_self(x, packing=packing)
        else:
            query = self.project_query(x, packing)
            key, value = self.project_memory(memory, memory_packing)
        return self.attend(query, key, value, mask, maps, packing)

    def project_self(
        self,
        x: Float[Tensor, "*B_T d_model"],
        start: int = 0,
        together: bool = False,
        packing: Packing = UNPACKED,
    ) -> tuple[
        Float[Tensor, "B H T d_k"],
        Float[Tensor, "B kv_heads T d_k"],
        Float[Tensor, "B kv_heads T d_v"],
    ]:
        """Make queries, keys and values of all heads from one sequence: x W^Q, x W^K, x W^V.

        Args:
            x: the sequence.
            start: position of its first vector; only rotary positions ask for it.
            together: all its vectors are at that position: they are beams, not a sequence.
            packing: of ``x``.

        Paper: section 3.2.2
        """
        query, key, value = packing.pad(self.in_projection(x)).split(self.sizes, -1)
        query, key = self.split_heads(query), self.split_heads(key, self.num_kv_heads)
        if self.rotary is not None:
            if together:
                query, key = query.unsqueeze(-2), key.unsqueeze(-2)
            query, key = self.rotary(query, start), self.rotary(key, start)
            if together:
                query, key = query.squeeze(-2), key.squeeze(-2)
        return query, key, self.split_heads(value, self.num_kv_heads)

    def project_query(
        self, x: Float[Tensor, "*B_T d_model"], packing: Packing = UNPACKED
    ) -> Float[Tensor, "B H T d_k"]:
        """Make the queries of all heads: x W^Q.

        Paper: section 3.2.2
        """
        return self.split_heads(packing.pad(self._project(x, slice(0, self.sizes[0]))))

    def project_memory(
        self, memory: Float[Tensor, "*B_S d_model"], packing: Packing = UNPACKED
    ) -> tuple[Float[Tensor, "B kv_heads S d_k"], Float[Tensor, "B kv_heads S d_v"]]:
        """Make the keys and values of all heads: memory W^K and memory W^V.

        Paper: section 3.2.2
        """
        projected = packing.pad(self._project(memory, slice(self.sizes[0], None)))
        key, value = projected.split(self.sizes[1:], -1)
        return self.split_heads(key, self.num_kv_heads), self.split_heads(value, self.num_kv_heads)

    def attend(
        self,
        query: Float[Tensor, "B H T d_k"],
        key: Float[Tensor, "B kv_heads S d_k"],
        value: Float[Tensor, "B kv_heads S d_v"],
        mask: Bool[Tensor, "..."] | None = None,
        maps: list[Float[Tensor, "B H T S"]] | None = None,
        packing: Packing = UNPACKED,
    ) -> Float[Tensor, "*B_T d_model"]:
        """Attend in every head, concatenate the heads and mix them: Concat(head_1..head_h) W^O.

        Paper: section 3.2.2
        """
        if self.num_kv_heads < self.num_heads:  # neighbouring query heads form a group
            queries_a_key = self.num_heads // self.num_kv_heads
            key, value = (each.repeat_interleave(queries_a_key, dim=1) for each in (key, value))
        dropout = self.dropout if self.training else 0.0
        if maps is None:
            heads = scaled_dot_product_attention(query, key, value, mask, dropout, self.scale)
        else:
            heads, weights = scaled_dot_product_attention(
                query, key, value, mask, dropout, self.scale, need_weights=True
            )
            maps.append(weights)
        concatenated = packing.pack(heads.transpose(1, 2).flatten(2))  # (B, T, H * d_v)
        return self.out_projection(concatenated)

    def split_heads(
        self, x: Float[Tensor, "B T features"], num_heads: int | None = None
    ) -> Float[Tensor, "B H T size"]:
        """Cut the features of each position into one slice a head.

        Paper: section 3.2.2
        """
        return x.unflatten(-1, (num_heads or self.num_heads, -1)).transpose(1, 2)

    def _project(self, x: Tensor, rows: slice) -> Tensor:
        bias = self.in_projection.bias
        return linear(x, self.in_projection.weight[rows], None if bias is None else bias[rows])
