"""A Transformer whose decoder sees too much or too little: what a wrong causal mask does.

Paper: section 3.1 (masking keeps predictions from depending on what follows)
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer.model.config import TransformerConfig
from transformer.model.masks import padding_mask
from transformer.model.transformer import Transformer


@dataclass
class Prefix:
    """What has been decoded so far. Nothing else is kept: each step computes all of it again."""

    source: Int[Tensor, "rows S"]
    memory: Float[Tensor, "rows S d_model"]
    tokens: Int[Tensor, "rows t"]

    def reorder(self, rows: Int[Tensor, "kept"]) -> None:
        """Keep these rows, in this order.

        Paper: section 6.1 (beam search)
        """
        self.source, self.memory = self.source[rows], self.memory[rows]
        self.tokens = self.tokens[rows]


class PeekingTransformer(Transformer):
    """A Transformer whose target position i may attend to positions 0..i + future.

    It decodes under the mask that it was trained with, so that whatever goes wrong there is the
    mask's doing and no mismatch.

    Args:
        config: sizes and options.
        future: how far the decoder sees ahead. 0 is the paper's mask, 1 the usual slip, and a
            number as large as the sequence is long no causal mask at all. Negative numbers hide
            the newest positions too.

    Paper: section 3.2.3
    """

    def __init__(self, config: TransformerConfig, future: int):
        super().__init__(config)
        self.future = future

    def target_mask(self, target: Int[Tensor, "B T"]) -> Bool[Tensor, "B 1 T T"]:
        """Say which target positions may attend to which; padding stays hidden.

        Paper: section 3.2.3
        """
        length = target.size(1)
        ones = torch.ones(length, length, dtype=torch.bool, device=target.device)
        return ones.tril(self.future) & padding_mask(target, self.config.pad_id)

    # The state is of another kind than the Transformer's, and only read by the method below.
    def start_decoding(  # type: ignore[override]
        self, source: Int[Tensor, "n S"], max_length: int, beam_size: int = 1
    ) -> Prefix:
        """Encode the source; ``max_length`` is not needed, since nothing is stored ahead.

        Paper: section 3.1 (auto-regressive generation)
        """
        rows = source.repeat_interleave(beam_size, dim=0)
        return Prefix(rows, self.encode(rows), rows[:, :0])

    def decode_next(  # type: ignore[override]
        self, tokens: Int[Tensor, "rows"], state: Prefix
    ) -> Float[Tensor, "rows V"]:
        """Feed the newest token of each row and return the logits of the one after it.

        Paper: section 3.1 (auto-regressive generation)
        """
        state.tokens = torch.cat([state.tokens, tokens[:, None]], dim=1)
        return self.decode(state.tokens, state.memory, state.source)[:, -1]
