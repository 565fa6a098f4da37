"""A convolutional translator: gated convolutions, with an attention in every decoder layer.

The strongest model without recurrence that the paper compares with, ConvS2S. It implements the
methods that training and search call, as the Transformer does, so everything that runs on the one
runs on the other.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.parametrizations import weight_norm

from transformer.model.attention import scaled_dot_product_attention
from transformer.model.base import TranslationModel
from transformer.model.masks import padding_mask
from transformer.model.positional import LearnedPositionalEmbedding
from transformer.settings import RATE, Settings, whole

HALF = math.sqrt(0.5)  # the sum of two things of variance 1, times this, has variance 1 again


@dataclass(frozen=True)
class ConvolutionalConfig(Settings):
    """Sizes of a :class:`ConvolutionalTranslator`.

    Raises:
        ValueError: if a size is not positive, ``kernel`` is even, or ``dropout`` is outside [0, 1).

    Reference: Gehring et al., 2017, for ConvS2S, which the paper quotes.
    """

    vocab_size: int  #: number of tokens V, source and target together
    d_model: int = 256  #: size of embeddings and of every layer
    num_layers: int = 4  #: of the encoder, and of the decoder
    kernel: int = 3  #: positions that one convolution sees, odd; depth d sees d (kernel - 1) + 1
    dropout: float = 0.0  #: on embeddings, the input of convolutions, and what the output reads
    max_length: int = 1024  #: longest sequence; positions are learned
    pad_id: int = 0
    bos_id: int = 1
    eos_id: int = 2
    positions: ClassVar[str] = "learned"

    _numbers = dict(
        dropout=RATE,
        max_length=whole(1, 1_000_000),
        **dict.fromkeys(("pad_id", "bos_id", "eos_id"), whole(0)),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kernel % 2 == 0:
            raise ValueError(f"kernel must be odd, got {self.kernel}")


class GatedConvolution(nn.Module):
    """A convolution over positions; half of its output channels gate the other half.

    ``kernel`` neighbours become 2 d_model channels (a, b), and the output is a * sigmoid(b).
    """

    def __init__(self, d_model: int, kernel: int, dropout: float):
        super().__init__()
        convolution = nn.Conv1d(d_model, 2 * d_model, kernel)
        # The gate lets half through and dropout removes a part: 4 makes up for the one, 1 - dropout
        # for the other, and the output has the variance of the input.
        nn.init.normal_(convolution.weight, std=math.sqrt(4 * (1 - dropout) / (kernel * d_model)))
        assert convolution.bias is not None
        nn.init.zeros_(convolution.bias)
        self.convolution = weight_norm(convolution, dim=0)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "B P d_model"]) -> Float[Tensor, "B Q d_model"]:
        """Convolve P = Q + kernel - 1 positions, those at the edges given by the caller."""
        return F.glu(self.convolution(self.dropout(x).transpose(1, 2)), dim=1).transpose(1, 2)


class MultiStepAttention(nn.Module):
    """The attention of one decoder layer to the source, with the layer's own state as the query.

    Each layer attends after its convolution, so that a later layer can use what an earlier one has
    read: several *steps* of attention, where a recurrent decoder has one per token.
    """

    def __init__(self, d_model: int):
        super().__init__()
        self.query = _linear(d_model)
        self.output = _linear(d_model)

    def forward(
        self,
        x: Float[Tensor, "B T d_model"],
        embedded: Float[Tensor, "B T d_model"],
        keys: Float[Tensor, "B S d_model"],
        values: Float[Tensor, "B S d_model"],
        mask: Bool[Tensor, "B 1 S"],
    ) -> Float[Tensor, "B T d_model"]:
        """Return x, the layer's state, with what was read added to it.

        The keys are the encoder's outputs, the values the same with the source's embeddings added;
        ``embedded`` is part of the query.
        """
        query = (self.query(x) + embedded) * HALF
        read = scaled_dot_product_attention(query, keys, values, mask, scale=1.0)
        # A mean over m values has 1 / m of their variance, if they weigh the same.
        read = read * mask.sum(dim=-1, keepdim=True).sqrt()
        return (x + self.output(read)) * HALF


@dataclass
class ConvolutionalState:
    """The state of each row of a search: its source, and the last inputs of each layer."""

    keys: Float[Tensor, "rows S d_model"]
    values: Float[Tensor, "rows S d_model"]
    mask: Bool[Tensor, "rows 1 S"]
    windows: list[Float[Tensor, "rows kernel_minus_1 d_model"]]
    length: int = 0

    def reorder(self, rows: Int[Tensor, "kept"]) -> None:
        """Let row i continue the sequence that row ``rows[i]`` holds now."""
        self.keys, self.values, self.mask = self.keys[rows], self.values[rows], self.mask[rows]
        self.windows = [window[rows] for window in self.windows]


class ConvolutionalTranslator(TranslationModel):
    """Stacks of gated convolutions; the decoder's see only the past and attend to the source.

    As in ConvS2S: learned positions, weight normalisation, residuals scaled by sqrt(1/2), one
    attention in every decoder layer whose values are encoder outputs plus source embeddings.
    Unlike there: one width throughout, and, as in our other models, one matrix for both embeddings
    and the output. The encoder's gradients are not scaled down, since Adam would undo it.

    Args:
        config: sizes.

    Paper: sections 2 and 4 (convolutional models), Table 2 (ConvS2S)
    """

    architecture = "convolutional"

    def __init__(self, config: ConvolutionalConfig):
        super().__init__(config)
        d = config.d_model

        def stack() -> nn.ModuleList:
            layers = (
                GatedConvolution(d, config.kernel, config.dropout) for _ in range(config.num_layers)
            )
            return nn.ModuleList(layers)

        self.embedding = nn.Embedding(config.vocab_size, d)
        self.source_positions = LearnedPositionalEmbedding(d, config.max_length)
        self.target_positions = LearnedPositionalEmbedding(d, config.max_length)
        self.encoder, self.decoder = stack(), stack()
        self.attention = nn.ModuleList(MultiStepAttention(d) for _ in range(config.num_layers))
        self.keys, self.readout = _linear(d), _linear(d)
        self.dropout = nn.Dropout(config.dropout)
        # Small and not multiplied by sqrt(d_model): scores are not scaled here, and embeddings of
        # variance 1 would let each query attend to only one position from the first step on.
        nn.init.normal_(self.embedding.weight, std=d**-0.5)
        for positions in (self.source_positions, self.target_positions):
            nn.init.normal_(positions.embedding.weight, std=d**-0.5)

    @property
    def output_weight(self) -> Float[Tensor, "V d_model"]:
        """The output projection, shared with the embeddings."""
        return self.embedding.weight

    def encode(self, source: Int[Tensor, "B S"]) -> Float[Tensor, "B S d_model"]:
        """Return the keys of the decoder's attention; zeros at padding."""
        real = (source != self.config.pad_id)[..., None]
        edge = self.config.kernel // 2
        x = self._embed(source, self.source_positions) * real
        for layer in self.encoder:
            # Padding must look like the edge of the sentence, which is zeros.
            x = (layer(F.pad(x, (0, 0, edge, edge))) + x) * HALF * real
        return self.keys(x) * real

    def decoder_states(
        self,
        target: Int[Tensor, "B T"],
        memory: Float[Tensor, "B S d_model"],
        source: Int[Tensor, "B S"],
    ) -> Float[Tensor, "B T d_model"]:
        """Return what the output matrix reads, at all target positions at once."""
        return self._advance(target, self._state(memory, source))

    def start_decoding(
        self, source: Int[Tensor, "n S"], max_length: int, beam_size: int = 1
    ) -> ConvolutionalState:
        """Encode the source for ``beam_size`` outputs of each sentence, of any length."""
        state = self._state(self.encode(source), source)
        state.reorder(torch.arange(len(source), device=source.device).repeat_interleave(beam_size))
        return state

    def decode_next(
        self, tokens: Int[Tensor, "rows"], state: ConvolutionalState
    ) -> Float[Tensor, "rows V"]:
        """Feed the newest token of each row and return the logits of the one after it."""
        return self.logits(self._advance(tokens[:, None], state)[:, 0])

    def _embed(self, ids: Tensor, positions: nn.Module, start: int = 0) -> Tensor:
        return self.dropout(positions(self.embedding(ids), start))

    def _state(self, memory: Tensor, source: Tensor) -> ConvolutionalState:
        mask = padding_mask(source, self.config.pad_id)[:, 0]
        # Without dropout: two draws of the same embeddings would differ.
        values = (memory + self.source_positions(self.embedding(source))) * HALF
        # Before the first position there is nothing: zeros.
        empty = memory.new_zeros(len(memory), self.config.kernel - 1, memory.size(-1))
        return ConvolutionalState(memory, values, mask, [empty] * self.config.num_layers)

    def _advance(self, target: Tensor, state: ConvolutionalState) -> Tensor:
        """Append positions to what ``state`` has read; return their states: (B, T, d_model)."""
        x = embedded = self._embed(target, self.target_positions, state.length)
        for i, (layer, attention) in enumerate(zip(self.decoder, self.attention, strict=True)):
            seen = torch.cat([state.windows[i], x], dim=1)
            state.windows[i] = seen[:, seen.size(1) - self.config.kernel + 1 :]
            read = attention(layer(seen), embedded, state.keys, state.values, state.mask)
            x = (read + x) * HALF
        state.length += target.size(1)
        return self.dropout(self.readout(x))


def _linear(d_model: int) -> nn.Module:
    """A weight-normalised projection that keeps the variance."""
    linear = nn.Linear(d_model, d_model)
    nn.init.normal_(linear.weight, std=d_model**-0.5)
    nn.init.zeros_(linear.bias)
    return weight_norm(linear, dim=0)
