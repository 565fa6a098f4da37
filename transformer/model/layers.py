"""The layers of encoder and decoder: sub-layers, each wrapped in a residual and a layer norm."""

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention
from transformer.model.config import Activation, NormKind, NormPlacement

# The function of the gate, for the activations that have one.
GATED: dict[str, Callable[[Tensor], Tensor]] = {"swiglu": F.silu, "geglu": F.gelu}

#: Classes by ``norm_kind``, each made as ``Norm(d_model, eps=eps)``, with ``reset_parameters``.
NORMS: dict[str, Any] = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}


def make_norm(kind: NormKind, d_model: int, eps: float = 1e-6) -> nn.Module:
    """Make a norm: "layer" subtracts the mean and divides by the deviation, "rms" only divides.

    Paper: section 3.1 ("rms" is due to Zhang and Sennrich 2019)
    """
    return NORMS[kind](d_model, eps=eps)


class PositionwiseFeedForward(nn.Module):
    """Two linear layers with an activation in between, applied to each position separately.

    Args:
        d_model: size of input and output.
        d_ff: size of the hidden layer.
        dropout: on the hidden layer; the paper has none.
        activation: "relu" gives Eq. (2). "swiglu" and "geglu" multiply the hidden layer by a gate,
            a third matrix with its own activation (Shazeer 2020).

    Paper: section 3.3, Eq. (2)
    """

    def __init__(
        self, d_model: int, d_ff: int, dropout: float = 0.0, activation: Activation = "relu"
    ):
        super().__init__()
        self.hidden = nn.Linear(d_model, d_ff)
        self.output = nn.Linear(d_ff, d_model)
        self.dropout = nn.Dropout(dropout)
        self.gate = nn.Linear(d_model, d_ff) if activation in GATED else None
        self.activation = GATED.get(activation) or getattr(F, activation)

    def forward(self, x: Float[Tensor, "B T d_model"]) -> Float[Tensor, "B T d_model"]:
        """Compute max(0, x W_1 + b_1) W_2 + b_2."""
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
        eps: added to the variance, or to the mean square, under the root.
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
        self.dropout = nn.Dropout(dropout)
        self.placement = norm

    def forward(
        self, x: Float[Tensor, "B T d_model"], sublayer: Callable[[Tensor], Tensor]
    ) -> Float[Tensor, "B T d_model"]:
        """Apply ``sublayer`` to ``x`` and add its output to ``x``."""
        if self.placement == "pre":
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network; ``make_residual`` wraps one sub-layer.

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
        self, x: Float[Tensor, "B S d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "B S d_model"]:
        """Run the layer; ``mask`` is True where a position may be attended to."""
        x = self.self_attention_residual(x, lambda y: self.self_attention(y, mask=mask))
        return self.feed_forward_residual(x, self.feed_forward)


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder's output, the feed-forward network.

    The causal mask also hides the padding at the end of a target from every real position.

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
        x: Float[Tensor, "B T d_model"],
        memory: Float[Tensor, "B S d_model"],
        source_mask: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "B T d_model"]:
        """Run the layer on all positions at once, as in training."""
        x = self.self_attention_residual(x, lambda y: self.self_attention(y, is_causal=True))
        x = self.cross_attention_residual(x, lambda y: self.cross_attention(y, memory, source_mask))
        return self.feed_forward_residual(x, self.feed_forward)
