"""A Transformer whose decoder sees too much or too little: the effect of a wrong causal mask."""

from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer.model.attention import MultiHeadAttention
from transformer.model.config import TransformerConfig
from transformer.model.masks import padding_mask
from transformer.model.transformer import Transformer


@dataclass
class Prefix:
    """The tokens decoded so far. Nothing is cached: each step recomputes all positions."""

    source: Int[Tensor, "rows S"]
    memory: Float[Tensor, "rows S d_model"]
    tokens: Int[Tensor, "rows t"]

    def reorder(self, rows: Int[Tensor, "kept"]) -> None:
        """Keep these rows, in this order."""
        self.source, self.memory = self.source[rows], self.memory[rows]
        self.tokens = self.tokens[rows]


class PeekingTransformer(Transformer):
    """A Transformer whose target position i may attend to 0..i + future, also in decoding."""

    def __init__(self, config: TransformerConfig, future: int):
        super().__init__(config)
        self.future = future

    def target_mask(self, target: Int[Tensor, "B T"]) -> Bool[Tensor, "B 1 T T"]:
        """Make the shifted causal mask; padding stays hidden."""
        length = target.size(1)
        ones = torch.ones(length, length, dtype=torch.bool, device=target.device)
        return ones.tril(self.future) & padding_mask(target, self.config.pad_id)

    def decoder_states(
        self,
        target: Int[Tensor, "B T"],
        memory: Float[Tensor, "B S d_model"],
        source: Int[Tensor, "B S"],
    ) -> Float[Tensor, "B T d_model"]:
        """Run the decoder under :meth:`target_mask`."""
        mask, source_mask = self.target_mask(target), self.source_mask(source)
        x = self.dropout(self.target_positions(self.embed_target(target)))
        for layer in self.decoder:
            x = layer.self_attention_residual(x, partial(_attend, layer.self_attention, mask))
            to_source = partial(layer.cross_attention, memory=memory, mask=source_mask)
            x = layer.cross_attention_residual(x, to_source)
            x = layer.feed_forward_residual(x, layer.feed_forward)
        return self.decoder_norm(x)

    # The state is of another kind than the Transformer's, and is read only by the method below.
    def start_decoding(  # type: ignore[override]
        self, source: Int[Tensor, "n S"], max_length: int, beam_size: int = 1
    ) -> Prefix:
        """Encode the source; ``max_length`` is unused, since nothing is allocated ahead."""
        rows = source.repeat_interleave(beam_size, dim=0)
        return Prefix(rows, self.encode(rows), rows[:, :0])

    def decode_next(  # type: ignore[override]
        self, tokens: Int[Tensor, "rows"], state: Prefix
    ) -> Float[Tensor, "rows V"]:
        """Append the newest token of each row and return the logits of the next one."""
        state.tokens = torch.cat([state.tokens, tokens[:, None]], dim=1)
        return self.decode(state.tokens, state.memory, state.source)[:, -1]


def _attend(attention: MultiHeadAttention, mask: Tensor, x: Tensor) -> Tensor:
    """Apply self-attention under a mask; a query that sees nothing gets heads of zeros."""
    blind = ~mask.any(dim=-1, keepdim=True)  # (B, 1, T, 1)
    heads = attention.attend(attention.project_query(x), *attention.project_memory(x), mask | blind)
    return attention.output_projection(heads.masked_fill(blind[:, 0], 0.0))
