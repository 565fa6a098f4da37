"""The Transformer: encoder, decoder, and the projection of vectors to logits."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from transformer.cached_decoding import CachedDecoding
from transformer.model.attention import MultiHeadAttention
from transformer.model.base import TranslationModel
from transformer.model.config import TransformerConfig
from transformer.model.embedding import TokenEmbedding, require_ids
from transformer.model.layers import (
    DecoderLayer,
    EncoderLayer,
    PositionwiseFeedForward,
    Residual,
    make_norm,
)
from transformer.model.masks import padding_mask
from transformer.model.positional import (
    LearnedPositionalEmbedding,
    NoPositions,
    RotaryPositions,
    SinusoidalPositionalEncoding,
)
from transformer.recording import RecordedAttention, record_attention, with_recorders


class Transformer(CachedDecoding, TranslationModel):
    """The encoder-decoder model of the paper.

    Token ids come in, logits go out. Masks are made from the ids. The decoder's input starts with
    ``bos_id``; its output at position i predicts the token that follows. Batches are padded at
    the end of each row.

    Raises:
        TypeError: if ``config`` is no :class:`~transformer.model.config.TransformerConfig`.

    Paper: section 3, Figure 1
    """

    architecture = "transformer"
    config: TransformerConfig
    # Each is an nn.ModuleList, whose own type does not name its items.
    encoder: Sequence[EncoderLayer]
    decoder: Sequence[DecoderLayer]

    def __init__(self, config: TransformerConfig):
        if not isinstance(config, TransformerConfig):
            raise TypeError(
                "config must be a TransformerConfig, such as TransformerConfig.base(vocab_size="
                f"37_000), got {config!r:.60}"
            )
        super().__init__(config)
        c, d = config, config.d_model
        d_k = c.d_k or d // c.num_heads
        prepared = min(c.max_length, 1 << 16)  # a longer sequence makes the table grow
        self.rotary = RotaryPositions(d_k, prepared) if c.positions == "rotary" else None

        def positions() -> nn.Module:
            if c.positions == "learned":
                return LearnedPositionalEmbedding(d, c.max_length)
            if c.positions in ("rotary", "none"):
                return NoPositions()
            is_t2t = c.positions == "sinusoidal-t2t"
            return SinusoidalPositionalEncoding(d, prepared, "t2t" if is_t2t else "paper")

        def attention(rotary: RotaryPositions | None = None) -> MultiHeadAttention:
            bias, dropout, scale = c.attention_bias, c.attention_dropout, c.attention_scale
            sizes = (d, c.num_heads, c.d_k, c.d_v)
            return MultiHeadAttention(*sizes, bias, dropout, scale, c.num_kv_heads, rotary)

        def feed_forward() -> PositionwiseFeedForward:
            return PositionwiseFeedForward(d, c.d_ff, c.activation_dropout, c.activation)

        def residual() -> Residual:
            return Residual(d, c.dropout, c.norm, c.layer_norm_eps, c.norm_kind)

        def final_norm() -> nn.Module:
            # Post-norm ends each stack with a norm already; pre-norm has to add one.
            final = c.norm == "pre" if c.final_norm is None else c.final_norm
            return make_norm(c.norm_kind, d, c.layer_norm_eps) if final else nn.Identity()

        self.embedding = TokenEmbedding(c.vocab_size, d)
        if c.sharing == "none":
            self.output = nn.Linear(d, c.vocab_size, bias=False)
        if c.sharing != "three-way":
            self.target_embedding = TokenEmbedding(c.vocab_size, d)
        self.positions = positions()
        # Sinusoids are the same on both sides; learned positions are learned for each.
        self.target_positions = positions() if c.positions == "learned" else self.positions
        self.dropout = nn.Dropout(c.dropout)
        self.encoder = nn.ModuleList(  # type: ignore[assignment]
            EncoderLayer(attention(self.rotary), feed_forward(), residual)
            for _ in range(c.num_layers)
        )
        # Relative positions are undefined across languages: no rotation towards the source.
        self.decoder = nn.ModuleList(  # type: ignore[assignment]
            DecoderLayer(attention(self.rotary), attention(), feed_forward(), residual)
            for _ in range(c.num_decoder_layers or c.num_layers)
        )
        self.encoder_norm, self.decoder_norm = final_norm(), final_norm()
        self.checkpoint_activations = False  # True computes activations twice to save memory
        self.reset_parameters()

    def encode(self, source: Int[Tensor, "B S"]) -> Float[Tensor, "B S d_model"]:
        """Turn source ids into one vector per position, the decoder's memory.

        Its values at padding positions are undefined; no query attends to them.

        Raises:
            ValueError: if ``source`` is empty, does not have two axes, or is not int64 or int32.
        """
        require_ids("source", source)
        mask = self.source_mask(source)
        x = self.dropout(self.positions(self.embedding(source)))
        for layer in self.encoder:
            x = self._run(layer, x, mask)
        return self.encoder_norm(x)

    def decoder_states(
        self,
        target: Int[Tensor, "B T"],
        memory: Float[Tensor, "B S d_model"],
        source: Int[Tensor, "B S"],
    ) -> Float[Tensor, "B T d_model"]:
        """Run the decoder without its output projection; ``source`` says where padding is.

        Raises:
            ValueError: if ``target`` is no matrix of ids with as many rows as ``source``.
        """
        require_ids("target", target, rows=len(source))
        source_mask = self.source_mask(source)
        x = self.dropout(self.target_positions(self.embed_target(target)))
        for layer in self.decoder:
            x = self._run(layer, x, memory, source_mask)
        return self.decoder_norm(x)

    def logits(self, states: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch V"]:
        """Apply the output projection, shared with the embeddings unless ``sharing`` is "none"."""
        return self.output(states) if self.config.sharing == "none" else super().logits(states)

    @property
    def output_weight(self) -> Float[Tensor, "V d_model"]:
        """The matrix of the pre-softmax linear transformation; ValueError if it has a bias."""
        if self.config.sharing != "none":
            return self._target_embedding.weight
        if isinstance(getattr(self.output, "bias", None), Tensor):
            raise ValueError("output must have no bias: the loss reads its weight alone")
        if isinstance(self.output, nn.Linear):
            return self.output.weight
        # A module in its place, such as LoRA's: the matrix that it applies.
        like = next(self.output.parameters())
        return self.output(torch.eye(self.config.d_model, device=like.device, dtype=like.dtype)).T

    def source_mask(self, source: Int[Tensor, "B S"]) -> Bool[Tensor, "B 1 1 S"] | None:
        """Return the mask of source positions; None for all of them."""
        return padding_mask(source, self.config.pad_id)

    def embed_target(self, target: Int[Tensor, "B T"]) -> Float[Tensor, "B T d_model"]:
        """Embed the decoder's input, without positions."""
        x = self._target_embedding(target)
        if self.config.first_input == "zeros":
            x = x.masked_fill((target == self.config.bos_id).unsqueeze(-1), 0.0)
        return x

    @torch.no_grad()
    def attention_weights(
        self, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"]
    ) -> RecordedAttention:
        """Return the attention weights of every layer and head for given ids."""
        with record_attention(self) as weights:
            self.decoder_states(target, self.encode(source), source)
        return weights

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Reinitialise all parameters, and compute tables of positions again.

        Glorot-uniform matrices, zero biases, embeddings from N(0, 1 / d_model). The paper is
        silent; this is what the published code did. It drew W^Q, W^K and W^V of self-attention as
        one matrix, which makes Glorot's bound smaller. (In cross-attention it did so with W^K and
        W^V only; here, all attention is drawn in the same way.)
        """
        config, std = self.config, self.config.d_model**-0.5
        attentions = [m for m in self.modules() if isinstance(m, MultiHeadAttention)]
        inputs = [(a.query_projection, a.key_projection, a.value_projection) for a in attentions]
        rows = {part: sum(p.out_features for p in parts) for parts in inputs for part in parts}
        for module in [*self.modules()][1:]:  # the first is the model
            if isinstance(module, nn.Linear):
                fan_out, fan_in = module.weight.shape
                bound = math.sqrt(3.0) * math.sqrt(2.0 / (fan_in + rows.get(module, fan_out)))
                nn.init.uniform_(module.weight, -bound, bound)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, TokenEmbedding) and config.init == "glorot":
                nn.init.xavier_uniform_(module.weight)
            elif isinstance(module, TokenEmbedding | nn.Embedding):
                nn.init.normal_(module.weight, std=std)
            elif callable(reset := getattr(module, "reset_parameters", None)):
                reset()  # a norm, or a table of sinusoids
        if config.init != "fused":
            for part in rows:
                nn.init.xavier_uniform_(part.weight)
        if config.sharing == "none" and config.init != "glorot":
            nn.init.normal_(self.output.weight, std=std)

    @property
    def _target_embedding(self) -> TokenEmbedding:
        return self.embedding if self.config.sharing == "three-way" else self.target_embedding

    def _run(self, layer: Callable[..., Tensor], *inputs: Any) -> Tensor:
        if self.checkpoint_activations and self.training:
            return checkpoint(with_recorders(layer), *inputs, use_reentrant=False)
        return layer(*inputs)
