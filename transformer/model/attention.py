"""Attention: a weighted mean of values, with weights from comparing queries with keys."""

import math
from typing import Literal, overload

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer.model.config import require_heads
from transformer.model.masks import require_mask
from transformer.model.positional import RotaryPositions
from transformer.recording import recorders_of


def masked_softmax(
    scores: Float[Tensor, "*batch T S"], mask: Bool[Tensor, "..."] | None = None
) -> Float[Tensor, "*batch T S"]:
    """Turn scores into weights that sum to 1 over the positions that may be attended to.

    Args:
        scores: compatibility of each query with each key, any real number.
        mask: True = may attend; broadcastable to ``scores``. The weights are exactly 0 where it is
            False, also in a row with nothing to attend to.

    Raises:
        TypeError: if the mask is not boolean.

    Paper: section 3.2.1, Eq. (1)
    """
    if mask is None:
        return scores.softmax(dim=-1)
    require_mask(mask)
    # The softmax of a row of -inf is NaN, and so is its gradient: let such a row attend to
    # everything, then set its weights to zero.
    empty = ~mask.any(dim=-1, keepdim=True)
    hidden = ~(mask | empty).expand_as(scores)  # a mask may not enlarge them
    weights = scores.masked_fill(hidden, -math.inf).softmax(dim=-1)
    return weights.masked_fill(empty, 0.0)


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

    Without ``need_weights`` PyTorch's fused kernel computes the output block by block, so that
    the T x S weights are never stored.

    Args:
        query: one row per position that attends.
        key: one row per position that can be attended to.
        value: what each of those positions contributes.
        mask: True = may attend; broadcastable to ``(*batch, T, S)``. A query that may attend to
            nothing gets an output of zeros.
        dropout: probability in [0, 1) of dropping a weight. 0 in the paper's translation models.
        scale: factor on the scores; 1 / sqrt(d_k) if None. 1.0 gives plain dot-product attention.
        need_weights: also return the weights before dropout, of shape ``(*batch, T, S)``.

    Paper: section 3.2.1, Eq. (1)
    """
    if need_weights:
        scale = 1 / math.sqrt(query.size(-1)) if scale is None else scale
        wide = torch.promote_types(query.dtype, torch.float32)  # as in the kernel
        scores = query.to(wide) @ key.to(wide).transpose(-2, -1) * scale
        weights = masked_softmax(scores, mask).to(value.dtype)
        return F.dropout(weights, dropout) @ value, weights
    if mask is None:
        return F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, scale=scale)
    require_mask(mask)
    empty = ~mask.any(dim=-1, keepdim=True)  # as in masked_softmax
    output = F.scaled_dot_product_attention(
        query, key, value, torch.atleast_2d(mask | empty), dropout, scale=scale
    )
    return output.masked_fill(empty, 0.0)


class AdditiveAttention(nn.Module):
    """Attention whose score is a small network: v^T tanh(W_q q + W_k k).

    The tanh takes a tensor of shape (T, S, d_hidden), where dot products take one of (T, S).
    Queries and keys may differ in size.

    Paper: section 3.2.1 (additive attention)
    """

    def __init__(self, d_query: int, d_key: int, d_hidden: int):
        super().__init__()
        self.query_projection = nn.Linear(d_query, d_hidden, bias=False)
        self.key_projection = nn.Linear(d_key, d_hidden, bias=False)
        self.score = nn.Linear(d_hidden, 1, bias=False)

    def forward(
        self,
        query: Float[Tensor, "*batch T d_query"],
        key: Float[Tensor, "*batch S d_key"],
        value: Float[Tensor, "*batch S d_v"],
        mask: Bool[Tensor, "..."] | None = None,
        need_weights: bool = False,
    ) -> Float[Tensor, "*batch T d_v"] | tuple[Tensor, Tensor]:
        """Attend; arguments and results as in :func:`scaled_dot_product_attention`."""
        weights = masked_softmax(self.scores(query, self.key_projection(key)), mask)
        return (weights @ value, weights) if need_weights else weights @ value

    def scores(
        self,
        query: Float[Tensor, "*batch T d_query"],
        projected_key: Float[Tensor, "*batch S d_hidden"],
    ) -> Float[Tensor, "*batch T S"]:
        """Compare queries with keys that a recurrent decoder projects once for all its steps."""
        query = self.query_projection(query)
        hidden = torch.tanh(query.unsqueeze(-2) + projected_key.unsqueeze(-3))
        return self.score(hidden).squeeze(-1)


class MultiHeadAttention(nn.Module):
    """Several attentions in parallel, each with its own projections of the input.

    Args:
        d_model: size of input and output vectors.
        num_heads: number of heads h.
        d_k: size of a head's queries and keys; d_model / num_heads if None.
        d_v: size of a head's values; d_model / num_heads if None.
        bias: add a bias to each projection. The paper's equations have none; its code has.
        dropout: probability of dropping an attention weight in training.
        scale: factor on the scores; 1 / sqrt(d_k) if None.
        num_kv_heads: number of heads of keys and values, each shared by a group of query heads;
            num_heads, one for each, if None (Ainslie et al. 2023).
        rotary: rotary embedding of queries and keys (Su et al. 2021), for self-attention.

    Raises:
        ValueError: if d_model is not divisible by num_heads, or num_heads by num_kv_heads.

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
        require_heads(d_model, num_heads, d_k, d_v, num_kv_heads)
        self.d_model, self.num_heads = d_model, num_heads
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        self.d_k = d_model // num_heads if d_k is None else d_k
        self.d_v = d_model // num_heads if d_v is None else d_v
        self.dropout, self.scale, self.rotary = dropout, scale, rotary
        # W^Q, W^K and W^V of all heads, one head below the other, and W^O.
        self.query_projection = nn.Linear(d_model, num_heads * self.d_k, bias)
        self.key_projection = nn.Linear(d_model, self.num_kv_heads * self.d_k, bias)
        self.value_projection = nn.Linear(d_model, self.num_kv_heads * self.d_v, bias)
        self.output_projection = nn.Linear(num_heads * self.d_v, d_model, bias)

    def forward(
        self,
        x: Float[Tensor, "*batch T d_model"],
        memory: Float[Tensor, "*batch S d_model"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
        is_causal: bool = False,
    ) -> Float[Tensor, "*batch T d_model"]:
        """Let each position of ``x`` attend to ``memory``, or to ``x`` itself if it is None.

        Args:
            x: where the queries come from.
            memory: where the keys and values come from, in encoder-decoder attention.
            mask: True = may attend; broadcastable to (B, H, T, S), something for every query.
            is_causal: each position may attend only to itself and to earlier ones.
        """
        if mask is not None:
            mask = torch.atleast_2d(mask)  # PyTorch's kernel needs both last axes
        query = self.project_query(x)
        key, value = self.project_memory(x if memory is None else memory)
        return self.output_projection(self.attend(query, key, value, mask, is_causal))

    def project_query(
        self, x: Float[Tensor, "*batch T d_model"], start: int = 0
    ) -> Float[Tensor, "*batch H T d_k"]:
        """Make the queries of all heads: x W^Q; ``start`` is the position of the first of them."""
        query = self.split_heads(self.query_projection(x), self.num_heads)
        return query if self.rotary is None else self.rotary(query, start)

    def project_memory(
        self, memory: Float[Tensor, "*batch S d_model"], start: int = 0
    ) -> tuple[Float[Tensor, "*batch kv_heads S d_k"], Float[Tensor, "*batch kv_heads S d_v"]]:
        """Make the keys and values of all heads: memory W^K and memory W^V."""
        key = self.split_heads(self.key_projection(memory), self.num_kv_heads)
        value = self.split_heads(self.value_projection(memory), self.num_kv_heads)
        return key if self.rotary is None else self.rotary(key, start), value

    def attend(
        self,
        query: Float[Tensor, "*batch H T d_k"],
        key: Float[Tensor, "*batch kv_heads S d_k"],
        value: Float[Tensor, "*batch kv_heads S d_v"],
        mask: Bool[Tensor, "..."] | None = None,
        is_causal: bool = False,
    ) -> Float[Tensor, "*batch T features"]:
        """Attend in every head and concatenate the heads: Concat(head_1, ..., head_h).

        Masks are those of :meth:`forward`, with at least two axes.
        """
        require_mask(mask)
        if self.num_kv_heads < self.num_heads:  # neighbouring query heads form a group
            group = self.num_heads // self.num_kv_heads
            key, value = (each.repeat_interleave(group, dim=-3) for each in (key, value))
        recorders = recorders_of(self)
        if is_causal and (mask is not None or recorders):  # the kernel takes only one of them
            causal = query.new_ones(query.size(-2), key.size(-2), dtype=torch.bool).tril()
            mask, is_causal = causal if mask is None else mask & causal, False
        dropout = self.dropout if self.training else 0.0
        if not recorders:
            heads = F.scaled_dot_product_attention(
                query, key, value, mask, dropout, is_causal, scale=self.scale
            )
        else:
            heads, weights = scaled_dot_product_attention(
                query, key, value, mask, dropout, self.scale, need_weights=True
            )
            for record in recorders:
                record(weights)
        return heads.transpose(-3, -2).flatten(-2)

    @staticmethod
    def split_heads(
        x: Float[Tensor, "*batch T features"], num_heads: int
    ) -> Float[Tensor, "*batch num_heads T size"]:
        """Cut the features of each position into one slice per head."""
        return x.unflatten(-1, (num_heads, -1)).transpose(-3, -2)
