"""The layers of encoder and decoder: sub-layers, each wrapped in a residual and a layer norm.

Paper: sections 3.1 and 3.3
"""

from collections.abc import Callable
from typing import Literal

import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention
from transformer.model.cache import LayerCache
from transformer.model.dropout import Dropout
from transformer.model.linear import Linear
from transformer.model.packing import UNPACKED, Packing

NormPlacement = Literal["post", "pre"]
NormKind = Literal["layer", "rms"]
Activation = Literal["relu", "gelu", "silu", "swiglu", "geglu"]
# the function that makes the gate
GATED: dict[str, Callable[[Tensor], Tensor]] = {"swiglu": F.silu, "geglu": F.gelu}


def make_norm(kind: NormKind, d_model: int, eps: float = 1e-6) -> nn.Module:
    """Make a norm: "layer" centres and divides by the spread, "rms" only divides by the size.

    Args:
        kind: "layer", as in the paper, or "rms".
        d_model: size of a vector.
        eps: added to the variance, or to the mean square, under the root.

    Paper: section 3.1; "rms" is not in the paper (Zhang and Sennrich 2019)
    """
    return (nn.LayerNorm if kind == "layer" else nn.RMSNorm)(d_model, eps=eps)


class PositionwiseFeedForward(nn.Module):
    """Two linear layers with an activation between, at each position alone.

    Args:
        d_model: size of input and output.
        d_ff: size of the hidden layer.
        dropout: on the hidden layer. Not in the paper, hence 0.
        activation: "relu" gives Eq. (2). "swiglu" and "geglu" multiply the hidden layer by a gate,
            a third matrix with its own activation. Not in the paper.

    Paper: section 3.3, Eq. (2)
    """

    def __init__(
        self, d_model: int, d_ff: int, dropout: float = 0.0, activation: Activation = "relu"
    ):
        super().__init__()
        self.hidden = Linear(d_model, d_ff)
        self.output = Linear(d_ff, d_model)
        self.dropout = Dropout(dropout)
        self.gate = Linear(d_model, d_ff) if activation in GATED else None
        self.activation: Callable[[Tensor], Tensor] = GATED.get(activation) or getattr(
            F, activation
        )

    def forward(self, x: Float[Tensor, "*B_T d_model"]) -> Float[Tensor, "*B_T d_model"]:
        """Compute max(0, x W_1 + b_1) W_2 + b_2.

        Paper: section 3.3, Eq. (2)
        """
        if self.gate is None:
            return self.output(self.dropout(self.activation(self.hidden(x))))
        return self.output(self.dropout(self.activation(self.gate(x)) * self.hidden(x)))


class Residual(nn.Module):
    """The wrapper of every sub-layer: dropout, residual sum, layer norm.

    "post": LayerNorm(x + Dropout(Sublayer(x))), the paper's. "pre": x + Dropout(Sublayer(
    LayerNorm(x))), which leaves an unnormalised path from the first layer to the last.

    Args:
        d_model: size of a vector.
        dropout: P_drop.
        norm: "post" or "pre".
        eps: added to the variance under the root.
        kind: "layer" or "rms", see :func:`make_norm`.

    Paper: sections 3.1 and 5.4
    """

    def __init__(
        self,
        d_model: int,
        dropout: float,
        norm: NormPlacement = "post",
        eps: float = 1e-6,
        kind: NormKind = "layer",
    ):
        super().__init__()
        self.norm = make_norm(kind, d_model, eps)
        self.dropout = Dropout(dropout)
        self.placement = norm

    def forward(
        self, x: Float[Tensor, "*B_T d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "*B_T d_model"]:
        """Apply ``sublayer`` to ``x`` and add what comes out to ``x``.

        Paper: section 3.1
        """
        if self.placement == "pre":
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network.

    Args:
        attention: the self-attention.
        feed_forward: the position-wise network.
        make_residual: makes the wrapper of one sub-layer.

    Paper: section 3.1
    """

    def __init__(
        self,
        attention: MultiHeadAttention,
        feed_forward: PositionwiseFeedForward,
        make_residual: Callable[[], Residual],
    ):
        super().__init__()
        self.self_attention, self.feed_forward = attention, feed_forward
        self.self_attention_residual = make_residual()
        self.feed_forward_residual = make_residual()

    def forward(
        self,
        x: Float[Tensor, "*B_S d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        maps: list[Float[Tensor, "B H S S"]] | None = None,
        packing: Packing = UNPACKED,
    ) -> Float[Tensor, "*B_S d_model"]:
        """Run the layer; ``maps`` collects the attention weights if it is a list.

        Paper: section 3.1
        """
        x = self.self_attention_residual(
            x, lambda y: self.self_attention(y, mask=mask, maps=maps, packing=packing)
        )
        return self.feed_forward_residual(x, self.feed_forward)


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder's output, the feed-forward network.

    Args:
        self_attention: the target's attention to itself.
        cross_attention: the target's attention to the source.
        feed_forward: the position-wise network.
        make_residual: makes the wrapper of one sub-layer.

    Paper: section 3.1
    """

    def __init__(
        self,
        self_attention: MultiHeadAttention,
        cross_attention: MultiHeadAttention,
        feed_forward: PositionwiseFeedForward,
        make_residual: Callable[[], Residual],
    ):
        super().__init__()
        self.self_attention, self.cross_attention = self_attention, cross_attention
        self.feed_forward = feed_forward
        self.self_attention_residual = make_residual()
        self.cross_attention_residual = make_residual()
        self.feed_forward_residual = make_residual()

    def forward(
        self,
        x: Float[Tensor, "*B_T d_model"],
        memory: Float[Tensor, "*B_S d_model"],
        target_mask: Bool[Tensor, "..."] | None = None,
        source_mask: Bool[Tensor, "..."] | None = None,
        self_maps: list[Float[Tensor, "B H T T"]] | None = None,
        cross_maps: list[Float[Tensor, "B H T S"]] | None = None,
        packing: Packing = UNPACKED,
        memory_packing: Packing = UNPACKED,
    ) -> Float[Tensor, "*B_T d_model"]:
        """Run the layer on all positions at once, as in training.

        Paper: section 3.1
        """
        x = self.self_attention_residual(
            x, lambda y: self.self_attention(y, None, target_mask, self_maps, packing)
        )
        x = self.cross_attention_residual(
            x,
            lambda y: self.cross_attention(
                y, memory, source_mask, cross_maps, packing, memory_packing
            ),
        )
        return self.feed_forward_residual(x, self.feed_forward)

    def step(
        self,
        x: Float[Tensor, "n beams d_model"],
        cache: LayerCache,
        position: int,
        visible: Bool[Tensor, "..."] | None = None,
        source_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "n beams d_model"]:
        """Run the layer on the newest position alone; the cache holds what it needs of the others.

        The beams of a sentence are so many queries to the same keys, those of its past and those
        of its source, so that both are stored once a sentence.

        Args:
            x: the newest position of each beam.
            cache: of this layer; it grows by one entry a beam.
            position: of ``x`` in the output.
            visible: True = the beam may attend to the entry; None for all of them.
            source_mask: True = may attend; None for all.

        Paper: section 3.1 (auto-regressive generation)
        """

        def attend_to_past(y: Tensor) -> Tensor:
            query, key, value = self.self_attention.project_self(y, position, together=True)
            return self.self_attention.attend(query, *cache.append(key, value), visible)

        def attend_to_source(y: Tensor) -> Tensor:
            query = self.cross_attention.project_query(y)
            return self.cross_attention.attend(
                query, cache.cross_key, cache.cross_value, source_mask
            )

        x = self.self_attention_residual(x, attend_to_past)
        x = self.cross_attention_residual(x, attend_to_source)
        return self.feed_forward_residual(x, self.feed_forward)
