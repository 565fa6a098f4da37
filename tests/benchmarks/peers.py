"""The same model in four libraries, each trained the way its users do.

Same sizes, one matrix for both embeddings and the output, dropout 0.1, label smoothing 0.1.
"""

import math
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from transformer.data.batching import Batch
from transformer.model.config import TransformerConfig
from transformer.model.masks import causal_mask
from transformer.model.positional import sinusoidal_table
from transformer.model.transformer import Transformer
from transformer.training.loss import TranslationLoss

OURS = "this package"
OURS_ON_MKL = "this package, MKL's products"


class Ours:
    """This package."""

    def __init__(self, config: TransformerConfig):
        self.model = Transformer(config)
        self.objective = TranslationLoss(self.model)

    def loss(self, batch: Batch) -> Tensor:
        total, _ = self.objective(batch.source, batch.target_input, batch.labels)
        return total / batch.num_target_tokens


def smoothed_loss(logits: Tensor, batch: Batch, config: TransformerConfig) -> Tensor:
    """The loss that users of the other libraries write."""
    return F.cross_entropy(
        logits.flatten(0, 1),
        batch.labels.flatten(),
        ignore_index=config.pad_id,
        label_smoothing=0.1,
    )


class TorchTransformer:
    """torch.nn.Transformer with the embeddings that its users write around it."""

    def __init__(self, config: TransformerConfig):
        self.config = config
        d = config.d_model
        self.model = nn.Module()
        self.model.embedding = nn.Embedding(config.vocab_size, d)
        nn.init.normal_(self.model.embedding.weight, std=d**-0.5)
        self.model.core = nn.Transformer(
            d,
            config.num_heads,
            config.num_layers,
            config.num_layers,
            config.d_ff,
            config.dropout,
            batch_first=True,
        )
        self.table = sinusoidal_table(512, d)

    def embed(self, ids: Tensor) -> Tensor:
        x = self.model.embedding(ids) * math.sqrt(self.config.d_model)
        return F.dropout(x + self.table[: ids.size(1)], self.config.dropout, self.model.training)

    def loss(self, batch: Batch) -> Tensor:
        padding = batch.source == self.config.pad_id  # True = hidden, in this library
        states = self.model.core(
            self.embed(batch.source),
            self.embed(batch.target_input),
            tgt_mask=~causal_mask(batch.target_input.size(1)),
            tgt_is_causal=True,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return smoothed_loss(states @ self.model.embedding.weight.T, batch, self.config)


class HuggingFaceMarian:
    """transformers.MarianMTModel: post-norm, sinusoidal, three-way shared, as in the paper."""

    def __init__(self, config: TransformerConfig):
        from transformers import MarianConfig, MarianMTModel

        self.config = config
        self.model = MarianMTModel(
            MarianConfig(
                vocab_size=config.vocab_size,
                d_model=config.d_model,
                encoder_layers=config.num_layers,
                decoder_layers=config.num_layers,
                encoder_attention_heads=config.num_heads,
                decoder_attention_heads=config.num_heads,
                encoder_ffn_dim=config.d_ff,
                decoder_ffn_dim=config.d_ff,
                dropout=config.dropout,
                attention_dropout=0.0,
                activation_dropout=0.0,
                activation_function="relu",
                scale_embedding=True,
                max_position_embeddings=512,
                pad_token_id=config.pad_id,
                eos_token_id=config.eos_id,
                decoder_start_token_id=config.bos_id,
                forced_eos_token_id=None,
            )
        )

    def loss(self, batch: Batch) -> Tensor:
        logits = self.model(
            input_ids=batch.source,
            attention_mask=batch.source != self.config.pad_id,
            decoder_input_ids=batch.target_input,
            use_cache=False,
        ).logits
        return smoothed_loss(logits, batch, self.config)


class XTransformers:
    """x_transformers.XTransformer with flash attention, norms behind as in the paper."""

    def __init__(self, config: TransformerConfig):
        from x_transformers import XTransformer

        sides: dict[str, Any] = {}
        for side in ("enc", "dec"):
            sides |= {
                f"{side}_num_tokens": config.vocab_size,
                f"{side}_depth": config.num_layers,
                f"{side}_heads": config.num_heads,
                f"{side}_attn_dim_head": config.d_model // config.num_heads,
                f"{side}_ff_mult": config.d_ff / config.d_model,
                f"{side}_max_seq_len": 512,
                f"{side}_attn_flash": True,
                f"{side}_ff_dropout": config.dropout,
                f"{side}_emb_dropout": config.dropout,
                f"{side}_pre_norm": False,
            }
        self.config = config
        self.model = XTransformer(dim=config.d_model, tie_token_emb=True, **sides)
        decoder = self.model.decoder.net
        decoder.to_logits.weight = decoder.token_emb.emb.weight

    def loss(self, batch: Batch) -> Tensor:
        real = batch.source != self.config.pad_id
        memory = self.model.encoder(batch.source, mask=real, return_embeddings=True)
        logits = self.model.decoder.net(batch.target_input, context=memory, context_mask=real)
        return smoothed_loss(logits, batch, self.config)


PEERS = {
    OURS: Ours,
    OURS_ON_MKL: Ours,
    "torch.nn.Transformer": TorchTransformer,
    "Hugging Face Marian": HuggingFaceMarian,
    "x-transformers": XTransformers,
}
