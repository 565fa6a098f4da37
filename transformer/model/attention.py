"""Attention: a weighted mean of values, with weights from comparing queries with keys."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Literal, overload

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer.model.masks import require_mask
from transformer.model.positional import RotaryPositions


def masked_softmax(
    scores: Float[Tensor, "*batch T S"], mask: Bool[Tensor, "..."] | None = None
) -> Float[Tensor, "*batch T S"]:
    """Turn scores into weights that sum to 1 over the positions that may be attended to.

    The weights of a row with nothing to attend to are zeros, not NaN.

    Args:
        scores: compatibility of each query with each key, any real number.
        mask: True = may attend; broadcastable to ``scores``.

    Returns:
        Weights in [0, 1], exactly 0 wherever the mask is False.

    Raises:
        TypeError: if the mask is not boolean.
        RuntimeError: if the mask does not broadcast to ``scores``.

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
        need_weights: also return the weights, before dropout.

    Returns:
        The output, or (output, weights of shape ``(*batch, T, S)``).

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

    Every pair of query and key passes through the tanh, which takes a tensor of shape
    (T, S, d_hidden) where dot products take one of shape (T, S).

    Args:
        d_query: size of a query.
        d_key: size of a key; it may differ from ``d_query``.
        d_hidden: size of the hidden layer.

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

        A recurrent decoder attends to the same keys at every step; they are projected once.
        """
        hidden = torch.tanh(
            self.query_projection(query).unsqueeze(-2) + projected_key.unsqueeze(-3)
        )
        weights = masked_softmax(self.score(hidden).squeeze(-1), mask)  # hidden: (*batch, T, S, d)
        output = weights @ value
        return (output, weights) if need_weights else output


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
        if self.num_kv_heads < 1 or num_heads % self.num_kv_heads:
            raise ValueError(
                f"num_heads must be divisible by num_kv_heads, "
                f"got num_heads={num_heads}, num_kv_heads={num_kv_heads}"
            )
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
            memory: where the keys and values come from (encoder-decoder attention).
            mask: True = may attend; broadcastable to (B, num_heads, T, S). Every query must have
                something to attend to.
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
        """Make the queries of all heads: x W^Q.

        Args:
            x: where the queries come from.
            start: position of the first of them, for rotary positions.
        """
        query = self.split_heads(self.query_projection(x), self.num_heads)
        return query if self.rotary is None else self.rotary(query, start)

    def project_memory(
        self, memory: Float[Tensor, "*batch S d_model"], start: int = 0
    ) -> tuple[Float[Tensor, "*batch kv_heads S d_k"], Float[Tensor, "*batch kv_heads S d_v"]]:
        """Make the keys and values of all heads: memory W^K and memory W^V.

        Args:
            memory: where the keys and values come from.
            start: position of the first of them, as in :meth:`project_query`.
        """
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

        Args:
            query: the queries of all heads, from :meth:`project_query`.
            key: the keys, from :meth:`project_memory`.
            value: the values, from :meth:`project_memory`.
            mask: as in :meth:`forward`, with at least two axes.
            is_causal: as in :meth:`forward`.
        """
        require_mask(mask)
        if self.num_kv_heads < self.num_heads:  # neighbouring query heads form a group
            group = self.num_heads // self.num_kv_heads
            key, value = (each.repeat_interleave(group, dim=-3) for each in (key, value))
        recorders = recorders_of(self)
        if is_causal and (mask is not None or recorders):
            # The kernel takes only one of them.
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


class RecordedAttention(dict[str, Tensor]):
    """Attention weights (B, H, T, S) by the name of the module that computed them.

    For a :class:`~transformer.model.transformer.Transformer` the names are such as
    "encoder.0.self_attention" and "decoder.2.cross_attention".

    Paper: section 3.2.3, Figures 3 to 5
    """

    @property
    def encoder(self) -> list[Tensor]:
        """Self-attention of the encoder, a tensor per layer."""
        return [self[name] for name in self if "encoder" in name.split(".")]

    @property
    def decoder(self) -> list[Tensor]:
        """Self-attention of the decoder, a tensor per layer."""
        names = [name for name in self if name.endswith("self_attention")]
        return [self[name] for name in names if "decoder" in name.split(".")]

    @property
    def cross(self) -> list[Tensor]:
        """Attention of the decoder to the encoder's output, a tensor per layer."""
        return [self[name] for name in self if name.endswith("cross_attention")]


Recorder = Callable[[Tensor], None]

# The recorders of the open ``record_attention`` blocks around the running code, innermost last.
# Not an attribute of the modules: other threads may be running the same model.
_RECORDERS: ContextVar[tuple[dict[nn.Module, Recorder], ...]] = ContextVar("recorders", default=())
# One item per open block in any thread. torch.compile cannot trace a ContextVar, but it traces the
# test whether a list is empty and compiles again when the answer changes.
_OPEN: list[None] = []


def recorders_of(attention: nn.Module) -> list[Recorder]:
    """Return what is to be called with the weights of an attention: nothing, if nobody records.

    Args:
        attention: the layer that is running.
    """
    if not _OPEN:
        return []
    return [each[attention] for each in _RECORDERS.get() if attention in each]


@contextmanager
def record_attention(model: nn.Module) -> Iterator[RecordedAttention]:
    """Record the attention weights of every layer while the ``with`` block runs.

    If a layer runs more than once, only its last weights are kept. They are part of the graph:
    gradients flow through them. With ``checkpoint_activations`` the backward pass runs each layer
    again, so call ``backward`` inside the block too.

    Other threads may use the model meanwhile, and record it themselves: a block sees what its own
    thread runs. Blocks may be nested and may end in any order; each records all that runs in it.

    Args:
        model: a model, or a single :class:`MultiHeadAttention`, whose name is then "".

    Paper: section 3.2.3, Figures 3 to 5
    """
    recorded = RecordedAttention()
    recorders: dict[nn.Module, Recorder] = {
        module: partial(recorded.__setitem__, name)
        for name, module in model.named_modules()
        if isinstance(module, MultiHeadAttention)
    }
    _OPEN.append(None)
    _RECORDERS.set((*_RECORDERS.get(), recorders))
    try:
        yield recorded
    finally:
        # Not by a token, which would also close a block that was opened later and is still open.
        _RECORDERS.set(tuple(each for each in _RECORDERS.get() if each is not recorders))
        recorders.clear()  # the block may end in another context than it began in
        _OPEN.pop()


def with_recorders(layer: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a layer that tells the recorders of now, whichever thread runs it.

    A checkpoint runs a layer again in the backward pass, which has threads of its own on a GPU.

    Args:
        layer: a layer, or another function that runs attention.
    """
    if not _OPEN:
        return layer
    recorders = _RECORDERS.get()

    def run(*inputs: Any) -> Tensor:
        token = _RECORDERS.set(recorders)
        try:
            return layer(*inputs)
        finally:
            _RECORDERS.reset(token)

    return run
