"""The Transformer: encoder, decoder, and the matrix that turns vectors into logits.

Paper: section 3, Figure 1
"""

from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from transformer.model.attention import MultiHeadAttention
from transformer.model.cache import DecodingState, LayerCache, own_entries
from transformer.model.config import TransformerConfig
from transformer.model.dropout import Dropout
from transformer.model.embedding import TokenEmbedding
from transformer.model.hub import HubModel
from transformer.model.interface import Stack
from transformer.model.layers import (
    DecoderLayer,
    EncoderLayer,
    PositionwiseFeedForward,
    Residual,
    make_norm,
)
from transformer.model.linear import Linear, linear
from transformer.model.masks import causal_mask, padding_mask
from transformer.model.packing import UNPACKED, Packing, may_look
from transformer.model.positional import (
    Layout,
    LearnedPositionalEmbedding,
    NoPositions,
    RotaryPositions,
    SinusoidalPositionalEncoding,
)


@dataclass
class AttentionMaps:
    """Attention weights of every layer: one tensor (B, H, queries, keys) a layer.

    Paper: section 3.2.3, Figures 3 to 5
    """

    encoder: list[Tensor] = field(default_factory=list)
    decoder: list[Tensor] = field(default_factory=list)
    cross: list[Tensor] = field(default_factory=list)


class Transformer(nn.Module, HubModel):
    """The encoder-decoder model of the paper.

    Token ids come in, logits go out. Masks are made from the ids. The decoder's input starts with
    ``bos_id``; its output at position i is the guess for the token that follows.

    In training on a CPU the layers see the real positions alone, one after the other. Whoever looks
    inside with hooks there sets ``skip_padding`` to False, and gets whole batches as in evaluation.

    ``save_pretrained``, ``from_pretrained`` and ``push_to_hub`` come from the Hugging Face Hub's
    mixin: weights as safetensors, configuration as JSON.

    Args:
        config: sizes and options.

    Paper: section 3, Figure 1
    """

    # Each is an nn.ModuleList, whose own type does not say what it holds.
    encoder: Stack[EncoderLayer]
    decoder: Stack[DecoderLayer]

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.config = config
        d = config.d_model
        self.embedding = TokenEmbedding(config.vocab_size, d)
        if config.sharing == "none":
            self.output = Linear(d, config.vocab_size, bias=False)
        if config.sharing != "three-way":
            self.target_embedding = TokenEmbedding(config.vocab_size, d)
        self.positions = self._positions()
        # Sinusoids are the same on both sides; learned positions are learned for each.
        self.target_positions = (
            self._positions() if config.positions == "learned" else self.positions
        )
        d_k = config.d_k or d // config.num_heads
        self.rotary = RotaryPositions(d_k) if config.positions == "rotary" else None
        self.dropout = Dropout(config.dropout)

        num_decoder_layers = config.num_decoder_layers or config.num_layers
        self.encoder = nn.ModuleList(  # type: ignore[assignment]
            EncoderLayer(self._attention(self.rotary), self._feed_forward(), self._residual)
            for _ in range(config.num_layers)
        )
        self.decoder = nn.ModuleList(  # type: ignore[assignment]
            DecoderLayer(
                self._attention(self.rotary),
                self._attention(),  # source and target positions are no distance apart
                self._feed_forward(),
                self._residual,
            )
            for _ in range(num_decoder_layers)
        )
        # Post-norm ends each stack with a norm already; pre-norm has to add one.
        final = config.norm == "pre" if config.final_norm is None else config.final_norm
        self.encoder_norm = self._norm() if final else nn.Identity()
        self.decoder_norm = self._norm() if final else nn.Identity()

        self.checkpoint_activations = False  # set by training when memory is short
        self.skip_padding = True  # in training; False works on padding too, as most programs do
        self.reset_parameters()

    # ------------------------------------------------------------------ the forward pass

    def forward(
        self, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T V"]:
        """Return the logits of the next token at every target position.

        Args:
            source: source ids, padded with ``pad_id``.
            target: target ids shifted right: ``bos_id`` first.

        Raises:
            ValueError: if an id is out of range (on the CPU), or a sequence is longer than the
                learned positions.

        Paper: section 3, Figure 1
        """
        return self.decode(target, self.encode(source), source)

    def encode(
        self,
        source: Int[Tensor, "B S"],
        maps: list[Float[Tensor, "B H S S"]] | None = None,
    ) -> Float[Tensor, "B S d_model"]:
        """Turn source ids into one vector a position, the decoder's memory.

        Args:
            source: source ids, padded with ``pad_id``.
            maps: a list to append each layer's attention weights to.

        Returns:
            The memory. What it holds at padding says nothing: nobody may attend to it.

        Paper: section 3.1, Encoder
        """
        mask, packing = self._source_mask(source), self._packing(source, maps)
        x = packing.pack(self.dropout(self.positions(self.embedding(source))))
        for layer in self.encoder:
            x = self._run(layer, x, mask, maps, packing)
        return packing.pad(self.encoder_norm(x))

    def decode(
        self,
        target: Int[Tensor, "B T"],
        memory: Float[Tensor, "B S d_model"],
        source: Int[Tensor, "B S"],
    ) -> Float[Tensor, "B T V"]:
        """Return the logits at every target position, given the encoder's output.

        Args:
            target: target ids shifted right.
            memory: what :meth:`encode` returned.
            source: the source ids, for their padding mask.

        Paper: section 3.1, Decoder
        """
        return linear(self.decoder_states(target, memory, source), self.output_weight)

    def decoder_states(
        self,
        target: Int[Tensor, "B T"],
        memory: Float[Tensor, "B S d_model"],
        source: Int[Tensor, "B S"],
        self_maps: list[Float[Tensor, "B H T T"]] | None = None,
        cross_maps: list[Float[Tensor, "B H T S"]] | None = None,
    ) -> Float[Tensor, "B T d_model"]:
        """Run the decoder without its output projection.

        Training multiplies by ``output_weight`` only where there is a token to predict.

        Paper: section 3.1, Decoder
        """
        source_mask = self._source_mask(source)
        target_mask, packing = self.target_mask(target), self._packing(target, self_maps)
        memory_packing = self._packing(source, self_maps)
        memory = memory_packing.pack(memory)
        x = packing.pack(self.dropout(self.target_positions(self._embed_target(target))))
        for layer in self.decoder:
            x = self._run(
                layer,
                x,
                memory,
                target_mask,
                source_mask,
                self_maps,
                cross_maps,
                packing,
                memory_packing,
            )
        return packing.pad(self.decoder_norm(x))

    def target_mask(self, target: Int[Tensor, "B T"]) -> Bool[Tensor, "B 1 T T"]:
        """Say which target positions may attend to which: no future, no padding.

        Paper: section 3.2.3
        """
        causal = causal_mask(target.size(1), target.device)
        return causal & padding_mask(target, self.config.pad_id)

    @property
    def output_weight(self) -> Float[Tensor, "V d_model"]:
        """The pre-softmax linear transformation, shared with the embeddings unless told otherwise.

        Paper: section 3.4
        """
        return (
            self.output.weight if self.config.sharing == "none" else self._target_embedding.weight
        )

    @torch.no_grad()
    def attention_maps(
        self, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"]
    ) -> AttentionMaps:
        """Return who attends to whom, in every layer and head.

        Paper: section 3.2.3, Figures 3 to 5
        """
        maps = AttentionMaps()
        memory = self.encode(source, maps.encoder)
        self.decoder_states(target, memory, source, maps.decoder, maps.cross)
        return maps

    # ------------------------------------------------------------------ one token at a time

    def start_decoding(
        self, source: Int[Tensor, "n S"], max_length: int, beam_size: int = 1
    ) -> DecodingState:
        """Encode the source and make room for ``beam_size`` outputs of each sentence.

        Args:
            source: source ids, padded with ``pad_id``.
            max_length: most calls of :meth:`decode_next` that will follow.
            beam_size: rows a sentence.

        Raises:
            ValueError: if learned positions do not reach that far.

        Paper: section 3.1 (auto-regressive generation)
        """
        c = self.config
        if c.positions == "learned" and max_length > c.max_length:
            raise ValueError(
                f"max_length {max_length} is beyond the {c.max_length} learned positions"
            )
        memory = self.encode(source)
        layers = []
        for layer in self.decoder:
            cross_key, cross_value = layer.cross_attention.project_memory(memory)
            room = (*cross_key.shape[:2], max_length * beam_size)
            key = cross_key.new_empty(*room, cross_key.size(-1))
            value = cross_value.new_empty(*room, cross_value.size(-1))
            layers.append(LayerCache(key, value, cross_key, cross_value))
        own = own_entries(beam_size, max_length, source.device)
        return DecodingState(
            layers,
            source_mask=self._source_mask(source),
            ancestors=None if beam_size == 1 else own.repeat(len(source), 1, 1, 1),
            beam_size=beam_size,
        )

    def decode_next(
        self, tokens: Int[Tensor, "rows"], state: DecodingState
    ) -> Float[Tensor, "rows V"]:
        """Feed the newest token of each row and return the logits of the one after it.

        Args:
            tokens: ``bos_id`` at first, then what the search chose.
            state: what :meth:`start_decoding` returned; it advances by one position.

        Paper: section 3.1 (auto-regressive generation)
        """
        x = self._embed_target(tokens[:, None])
        x = self.target_positions(x, start=state.position).view(len(state), state.beam_size, -1)
        visible = state.visible()
        for layer, cache in zip(self.decoder, state.layers, strict=True):
            x = layer.step(x, cache, state.position, visible, state.source_mask)
        state.position += 1
        return linear(self.decoder_norm(x).flatten(0, 1), self.output_weight)

    # ------------------------------------------------------------------ parameters

    def num_parameters(self) -> int:
        """Count the parameters, a shared matrix once.

        Paper: Table 3, last column
        """
        return sum(parameter.numel() for parameter in self.parameters())

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Draw all weights afresh.

        Glorot-uniform matrices, zero biases, embeddings from N(0, 1 / d_model). The paper is
        silent; this is what the published code did.
        """
        std = self.config.d_model**-0.5
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                if module.bias is not None:
                    nn.init.zeros_(module.bias)
            elif isinstance(module, (nn.LayerNorm, nn.RMSNorm)):
                module.reset_parameters()
            elif isinstance(module, TokenEmbedding) and self.config.init == "glorot":
                nn.init.xavier_uniform_(module.weight)
            elif isinstance(module, (TokenEmbedding, nn.Embedding)):
                nn.init.normal_(module.weight, std=std)
        if self.config.init != "fused":
            for attention in self.modules():
                if isinstance(attention, MultiHeadAttention):
                    for part in attention.in_projection.weight.split(attention.sizes):
                        nn.init.xavier_uniform_(part)
        if self.config.sharing == "none" and self.config.init != "glorot":
            nn.init.normal_(self.output.weight, std=std)

    @property
    def _target_embedding(self) -> TokenEmbedding:
        return self.embedding if self.config.sharing == "three-way" else self.target_embedding

    def _embed_target(self, target: Int[Tensor, "B T"]) -> Float[Tensor, "B T d_model"]:
        x = self._target_embedding(target)
        if self.config.first_input == "zeros":
            x = x.masked_fill((target == self.config.bos_id).unsqueeze(-1), 0.0)
        return x

    def _source_mask(self, source: Int[Tensor, "B S"]) -> Bool[Tensor, "B 1 1 S"] | None:
        mask = padding_mask(source, self.config.pad_id)
        # A mask costs as much where it hides nothing.
        return None if may_look(source) and bool(mask.all()) else mask

    def _packing(self, ids: Int[Tensor, "B T"], maps: list[Tensor] | None) -> Packing:
        # Who looks at what is inside, by maps or by hooks in evaluation, wants whole batches.
        skip = self.skip_padding and self.training and maps is None
        return Packing.of(ids, self.config.pad_id) if skip else UNPACKED

    def _run(self, layer: nn.Module, *inputs: Any) -> Tensor:
        if self.checkpoint_activations and self.training:
            return checkpoint(layer, *inputs, use_reentrant=False)
        return layer(*inputs)

    def _positions(
        self,
    ) -> SinusoidalPositionalEncoding | LearnedPositionalEmbedding | NoPositions:
        c = self.config
        if c.positions in ("rotary", "none"):
            return NoPositions()
        if c.positions == "learned":
            return LearnedPositionalEmbedding(c.d_model, c.max_length)
        layout: Layout = "t2t" if c.positions == "sinusoidal-t2t" else "paper"
        return SinusoidalPositionalEncoding(c.d_model, c.max_length, layout)

    def _attention(self, rotary: RotaryPositions | None = None) -> MultiHeadAttention:
        c = self.config
        return MultiHeadAttention(
            c.d_model,
            c.num_heads,
            c.d_k,
            c.d_v,
            bias=c.attention_bias,
            dropout=c.attention_dropout,
            scale=c.attention_scale,
            num_kv_heads=c.num_kv_heads,
            rotary=rotary,
        )

    def _feed_forward(self) -> PositionwiseFeedForward:
        c = self.config
        return PositionwiseFeedForward(c.d_model, c.d_ff, c.activation_dropout, c.activation)

    def _residual(self) -> Residual:
        c = self.config
        return Residual(c.d_model, c.dropout, c.norm, c.layer_norm_eps, c.norm_kind)

    def _norm(self) -> nn.Module:
        return make_norm(self.config.norm_kind, self.config.d_model, self.config.layer_norm_eps)
