"""Skip padding: pack the real positions of a batch into one long row.

Only attention needs to know which position belongs to which sentence. All other layers treat each
position separately, so they can run on the real positions alone: (1, N, d_model) instead of
(B, T, d_model).
"""

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, TypeGuard

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer.fast.linear import Linear, linear
from transformer.fast.private import may_be_replaced, may_be_transformed, may_have_hooks
from transformer.fast.residual import HalfResidual
from transformer.model.attention import MultiHeadAttention
from transformer.model.embedding import require_ids
from transformer.model.layers import (
    DecoderLayer,
    EncoderLayer,
    PositionwiseFeedForward,
    Residual,
)
from transformer.model.transformer import Transformer

# Gathering and scattering take a few percent of a step. Above this share of real positions they
# cost more than they save.
_FULL = 0.9


class Packing:
    """Where the real positions of a padded batch are.

    Args:
        rows: places of the N real positions in the flattened batch, ascending; None for all.
        shape: (B, T) of the padded batch.
    """

    def __init__(self, rows: Int[Tensor, "N"] | None = None, shape: tuple[int, int] = (0, 0)):
        self.rows, self.shape = rows, shape

    @classmethod
    def of(cls, ids: Int[Tensor, "B T"], pad_id: int = 0) -> "Packing":
        """Choose the real positions of these ids; all positions if nearly all are real.

        All positions also where the program may not branch on the ids, see :func:`may_look`.

        Args:
            ids: token ids.
            pad_id: the padding id.
        """
        if not may_look(ids):
            return cls()
        rows = (ids != pad_id).flatten().nonzero().flatten()
        return cls(rows if len(rows) < _FULL * ids.numel() else None, (len(ids), ids.size(1)))

    def pack(self, x: Float[Tensor, "B T features"]) -> Float[Tensor, "one N features"]:
        """Take the real positions: (B, T, features) becomes (1, N, features)."""
        x = x.flatten(0, 1)
        return (x if self.rows is None else take_rows(x, self.rows))[None]

    def pad(self, x: Float[Tensor, "one N features"]) -> Float[Tensor, "B T features"]:
        """Put them back, with zeros at padding: (1, N, features) becomes (B, T, features)."""
        rows = x[0]
        if self.rows is not None:
            rows = _Scatter.apply(rows, self.rows, self.shape[0] * self.shape[1])
        return rows.unflatten(0, self.shape)


# Packings of the queries and of the keys, while a layer runs on packed inputs.
_PACKINGS: ContextVar[tuple[Packing, Packing] | None] = ContextVar("packings", default=None)


class PackedAttention(MultiHeadAttention):
    """Multi-head attention between packed sequences: padded for the attention itself only."""

    def forward(
        self,
        x: Float[Tensor, "*batch T d_model"],
        memory: Float[Tensor, "*batch S d_model"] | None = None,
        mask: Bool[Tensor, "..."] | None = None,
        is_causal: bool = False,
    ) -> Float[Tensor, "*batch T d_model"]:
        """Attend as :class:`~transformer.model.attention.MultiHeadAttention` does."""
        if torch.compiler.is_compiling():
            return super().forward(x, memory, mask, is_causal)
        packings = _PACKINGS.get()
        queries, keys = (None, None) if packings is None else packings
        layers = (self.query_projection, self.key_projection, self.value_projection)
        if memory is None:
            query, key, value = _project(x, layers, queries)
        else:
            (query,) = _project(x, layers[:1], queries)
            key, value = _project(memory, layers[1:], keys)
        mask = None if mask is None else torch.atleast_2d(mask)
        heads = self.attend(
            self._heads(query, self.num_heads),
            self._heads(key, self.num_kv_heads),
            self.split_heads(value, self.num_kv_heads),
            mask,
            is_causal,
        )
        return self.output_projection(heads if queries is None else queries.pack(heads))

    def attend(
        self,
        query: Float[Tensor, "*batch H T d_k"],
        key: Float[Tensor, "*batch kv_heads S d_k"],
        value: Float[Tensor, "*batch kv_heads S d_v"],
        mask: Bool[Tensor, "..."] | None = None,
        is_causal: bool = False,
    ) -> Float[Tensor, "*batch T features"]:
        """Attend in every head; under autocast in float32, whose backward pass is faster here."""
        if not torch.is_autocast_enabled("cpu"):
            return super().attend(query, key, value, mask, is_causal)
        with torch.autocast("cpu", enabled=False):
            return super().attend(query.float(), key.float(), value.float(), mask, is_causal)

    def _heads(self, projected: Tensor, num_heads: int) -> Tensor:
        heads = self.split_heads(projected, num_heads)
        return heads if self.rotary is None else self.rotary(heads)


def _project(x: Tensor, layers: Sequence[nn.Module], packing: Packing | None) -> Sequence[Tensor]:
    """Apply several linear layers to the same input, in one product if nothing observes them."""
    bare = [layer for layer in layers if _is_bare(layer)]
    alike = len({layer.bias is None for layer in bare}) == 1
    if alike and len(bare) == len(layers) > 1:
        biases: list[Tensor] = [layer.bias for layer in bare if layer.bias is not None]
        bias = torch.cat(biases) if biases else None
        weights: list[Tensor] = [layer.weight for layer in bare]
        together = linear(x, torch.cat(weights), bias)
        sizes = [layer.out_features for layer in bare]
        return (together if packing is None else packing.pad(together)).split(sizes, dim=-1)
    parts = [layer(x) for layer in layers]
    return parts if packing is None else [packing.pad(part) for part in parts]


def _is_bare(layer: nn.Module) -> TypeGuard[Linear]:
    """Whether a layer is a Linear that nothing observes, replaces or quantizes."""
    return (
        type(layer) is Linear
        and type(layer.weight) is nn.Parameter
        and not may_be_replaced(layer)
        and not may_have_hooks(layer)
    )


class PackedTransformer(Transformer):
    """A Transformer that skips padding while it trains on a CPU.

    Hooks on its layers then see (1, N, d_model); in evaluation and on other devices they see
    (B, T, d_model).

    Paper: section 3, Figure 1
    """

    def encode(self, source: Int[Tensor, "B S"]) -> Float[Tensor, "B S d_model"]:
        """Encode; see :meth:`~transformer.model.transformer.Transformer.encode`."""
        require_ids("source", source)
        packing = self._packing(source)
        if packing.rows is None:
            return super().encode(source)
        mask = self.source_mask(source)
        x = packing.pack(self.dropout(self.positions(self.embedding(source))))
        for layer in self.encoder:
            x = self._run(_Packed(layer, packing, packing), x, mask)
        return packing.pad(self.encoder_norm(x))

    def decoder_states(
        self,
        target: Int[Tensor, "B T"],
        memory: Float[Tensor, "B S d_model"],
        source: Int[Tensor, "B S"],
    ) -> Float[Tensor, "B T d_model"]:
        """Decode; see :meth:`~transformer.model.transformer.Transformer.decoder_states`."""
        require_ids("target", target, rows=len(source))
        queries, keys = self._packing(target), self._packing(source)
        if queries.rows is None and keys.rows is None:
            return super().decoder_states(target, memory, source)
        source_mask = self.source_mask(source)
        memory = keys.pack(memory)
        x = queries.pack(self.dropout(self.target_positions(self.embed_target(target))))
        for layer in self.decoder:
            x = self._run(_Packed(layer, queries, keys), x, memory, source_mask)
        return queries.pad(self.decoder_norm(x))

    def source_mask(self, source: Int[Tensor, "B S"]) -> Bool[Tensor, "B 1 1 S"] | None:
        """Say which source positions may be attended to; None, which is faster, for all of them."""
        mask = super().source_mask(source)
        return None if mask is None or (may_look(source) and bool(mask.all())) else mask

    def logits(self, states: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch V"]:
        """Apply the output projection."""
        if self.config.sharing == "none":
            return self.output(states)
        return linear(states, self.output_weight)

    def _packing(self, ids: Tensor) -> Packing:
        # A part of another kind might mix the sentences of a packed row; a compiled one would not
        # read the packings.
        layers = [*self.encoder, *self.decoder]
        parts = [*layers, *(part for layer in layers for part in layer.children())]
        usual = all(type(part) in _PACKABLE and not may_be_replaced(part) for part in parts)
        return Packing.of(ids, self.config.pad_id) if self.training and usual else Packing()


_PACKABLE = (EncoderLayer, DecoderLayer, PackedAttention, PositionwiseFeedForward, Residual,
             HalfResidual)  # fmt: skip


class _Packed:
    """A layer called with packed inputs: tells its attention where the positions are."""

    def __init__(self, layer: nn.Module, queries: Packing, keys: Packing):
        self.layer, self.packings = layer, (queries, keys)

    def __call__(self, *inputs: Any) -> Tensor:
        before = _PACKINGS.set(self.packings)
        try:
            return self.layer(*inputs)
        finally:
            _PACKINGS.reset(before)


def may_look(values: Tensor) -> bool:
    """Say whether the program may branch on the numbers in a tensor.

    False on a GPU, where it would have to wait for them, and while PyTorch compiles, traces,
    exports or vectorises, because the result has to be valid for all numbers.

    Args:
        values: such as token ids or a mask, of any shape.
    """
    return (
        values.device.type == "cpu"
        and not torch.compiler.is_compiling()
        and not torch.jit.is_tracing()  # type: ignore[attr-defined]
        and not may_be_transformed()
    )


def take_rows(
    x: Float[Tensor, "all features"], rows: Int[Tensor, "N"]
) -> Float[Tensor, "N features"]:
    """Take some rows, each at most once, with a gradient that relies on that.

    PyTorch's gradient of a gather adds up, because rows might be taken twice; that is much slower.

    Args:
        x: the rows to choose from.
        rows: which of them, without repetition.
    """
    return _Gather.apply(x, rows)


# Each is the gradient of the other.
class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor) -> Tensor:
        ctx.save_for_backward(rows)
        ctx.length = len(x)
        return x.index_select(0, rows)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return _Scatter.apply(gradient, *ctx.saved_tensors, ctx.length), None


class _Scatter(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, rows: Tensor, length: int) -> Tensor:
        ctx.save_for_backward(rows)
        return x.new_zeros(length, *x.shape[1:]).index_copy_(0, rows, x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return _Gather.apply(gradient, *ctx.saved_tensors), None, None
