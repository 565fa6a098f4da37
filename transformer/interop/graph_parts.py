"""The two parts of a model that a search calls, as functions of tensors that keep nothing.

The *encoder* turns source ids into the keys and values that the decoder's layers attend to. The
*step* turns the newest token into logits: the keys and values of the tokens before go in, and come
out one longer. Each of these tensors holds all N decoder layers. ::

    encoder(source) -> cross_key, cross_value
    step(token, source, cross_key, cross_value, past_key, past_value) -> logits, key, value

Paper: section 3.1 (auto-regressive generation)
"""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer.model.layers import DecoderLayer
from transformer.model.masks import padding_mask
from transformer.model.transformer import Transformer


class EncoderGraph(nn.Module):
    """What is computed once a sentence.

    Args:
        model: whose weights to use.

    Paper: section 3.1, Encoder
    """

    def __init__(self, model: Transformer):
        super().__init__()
        self.model = model

    def forward(
        self, source: Int[Tensor, "B S"]
    ) -> tuple[Float[Tensor, "N B kv_heads S d_k"], Float[Tensor, "N B kv_heads S d_v"]]:
        """Return the keys and values of the source for each decoder layer.

        Args:
            source: ids with EOS after them, padded with ``pad_id``.

        Paper: section 3.1, Encoder
        """
        memory = self.model.encode(source)
        pairs = [layer.cross_attention.project_memory(memory) for layer in self.model.decoder]
        return torch.stack([key for key, _ in pairs]), torch.stack([value for _, value in pairs])


class StepGraph(nn.Module):
    """What is computed once a token.

    Args:
        model: whose weights to use.

    Paper: section 3.1, Decoder
    """

    def __init__(self, model: Transformer):
        super().__init__()
        self.model = model

    def forward(
        self,
        token: Int[Tensor, " B"],
        source: Int[Tensor, "B S"],
        cross_key: Float[Tensor, "N B kv_heads S d_k"],
        cross_value: Float[Tensor, "N B kv_heads S d_v"],
        past_key: Float[Tensor, "N B kv_heads T d_k"],
        past_value: Float[Tensor, "N B kv_heads T d_v"],
    ) -> tuple[Float[Tensor, "B V"], Float[Tensor, "..."], Float[Tensor, "..."]]:
        """Return the logits of the next token, and keys and values that are one longer.

        Args:
            token: ``bos_id`` at first, then what was chosen.
            source: the ids that the encoder got, for their padding.
            cross_key: from the encoder.
            cross_value: from the encoder.
            past_key: from the step before; T = 0 at first.
            past_value: from the step before; T = 0 at first.

        Paper: section 3.1, Decoder
        """
        model = self.model
        mask = padding_mask(source, model.config.pad_id)
        x = model._embed_target(token[:, None])
        x = model.target_positions(x, start=past_key.size(3))
        keys, values = [], []
        tensors = zip(past_key, past_value, cross_key, cross_value, strict=True)
        for layer, (*past, to_key, to_value) in zip(model.decoder, tensors, strict=True):
            x, key, value = _step(layer, x, past, (to_key, to_value), mask)
            keys.append(key)
            values.append(value)
        logits = F.linear(model.decoder_norm(x)[:, 0], model.output_weight)
        return logits, torch.stack(keys), torch.stack(values)


def _step(
    layer: DecoderLayer, x: Tensor, past: list[Tensor], source: tuple[Tensor, Tensor], mask: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """What ``DecoderLayer.step`` computes, without writing to a cache; a graph owns no memory."""
    kept: list[Tensor] = []

    def attend_to_past(y: Tensor) -> Tensor:
        query, *new = layer.self_attention.project_self(y, start=past[0].size(2))
        key, value = (torch.cat(pair, dim=2) for pair in zip(past, new, strict=True))
        kept.extend((key, value))
        return layer.self_attention.attend(query, key, value)

    def attend_to_source(y: Tensor) -> Tensor:
        query = layer.cross_attention.project_query(y)
        return layer.cross_attention.attend(query, *source, mask)

    x = layer.self_attention_residual(x, attend_to_past)
    x = layer.cross_attention_residual(x, attend_to_source)
    return layer.feed_forward_residual(x, layer.feed_forward), *kept
