"""The same model in four libraries, each trained as its users train it (the extra ``bench``)."""

import importlib
import math
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from transformer.data.batching import Batch
from transformer.fast import enable
from transformer.model.config import TransformerConfig
from transformer.model.masks import causal_mask
from transformer.model.positional import sinusoidal_table
from transformer.model.transformer import Transformer
from transformer.training.loss import TranslationLoss

OURS = "this package"
OURS_ON_MKL = "this package, MKL's products"


def require(library: str) -> Any:
    """Import a library that only the comparison needs."""
    return importlib.import_module(library)


class Ours:
    """This package."""

    def __init__(self, config: TransformerConfig):
        self.model = Transformer(config)
        enable(self.model)
        self.objective = TranslationLoss(self.model)

    def loss(self, batch: Batch) -> Tensor:
        """Compute the mean loss of a batch."""
        total, _ = self.objective(batch.source, batch.target_input, batch.labels)
        return total / batch.num_target_tokens


def smoothed_loss(logits: Tensor, batch: Batch, config: TransformerConfig) -> Tensor:
    """Compute the loss as users of the other libraries do."""
    labels, pad = batch.labels.flatten(), config.pad_id
    return F.cross_entropy(logits.flatten(0, 1), labels, ignore_index=pad, label_smoothing=0.1)


class TorchTransformer:
    """torch.nn.Transformer with the embeddings that its users write around it."""

    def __init__(self, config: TransformerConfig):
        self.config = config
        d, layers = config.d_model, config.num_layers
        self.embedding = nn.Embedding(config.vocab_size, d)
        nn.init.normal_(self.embedding.weight, std=d**-0.5)
        self.core = nn.Transformer(
            d, config.num_heads, layers, layers, config.d_ff, config.dropout, batch_first=True
        )
        self.model = nn.ModuleList([self.embedding, self.core])
        self.table = sinusoidal_table(512, d)

    def embed(self, ids: Tensor) -> Tensor:
        """Embed tokens, with positions and dropout."""
        x = self.embedding(ids) * math.sqrt(self.config.d_model)
        return F.dropout(x + self.table[: ids.size(1)], self.config.dropout, self.model.training)

    def loss(self, batch: Batch) -> Tensor:
        """Compute the mean loss of a batch."""
        padding = batch.source == self.config.pad_id  # True = hidden, in this library
        states = self.core(
            self.embed(batch.source),
            self.embed(batch.target_input),
            tgt_mask=~causal_mask(batch.target_input.size(1)),
            tgt_is_causal=True,
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        return smoothed_loss(states @ self.embedding.weight.T, batch, self.config)


class HuggingFaceMarian:
    """transformers.MarianMTModel: post-norm, sinusoidal, three-way shared, as in the paper."""

    def __init__(self, config: TransformerConfig):
        library, self.config = require("transformers"), config
        layers, heads, d_ff = config.num_layers, config.num_heads, config.d_ff
        self.model = library.MarianMTModel(
            library.MarianConfig(
                vocab_size=config.vocab_size, d_model=config.d_model,
                encoder_layers=layers, encoder_attention_heads=heads, encoder_ffn_dim=d_ff,
                decoder_layers=layers, decoder_attention_heads=heads, decoder_ffn_dim=d_ff,
                dropout=config.dropout, attention_dropout=0.0, activation_dropout=0.0,
                activation_function="relu", scale_embedding=True, max_position_embeddings=512,
                pad_token_id=config.pad_id, eos_token_id=config.eos_id,
                decoder_start_token_id=config.bos_id, forced_eos_token_id=None,
            )
        )  # fmt: skip

    def loss(self, batch: Batch) -> Tensor:
        """Compute the mean loss of a batch."""
        logits = self.model(
            input_ids=batch.source,
            attention_mask=batch.source != self.config.pad_id,
            decoder_input_ids=batch.target_input,
            use_cache=False,
        ).logits
        return smoothed_loss(logits, batch, self.config)


class XTransformers:
    """x_transformers.XTransformer with flash attention and post-norm, as in the paper."""

    def __init__(self, config: TransformerConfig):
        side = dict(
            num_tokens=config.vocab_size, depth=config.num_layers, heads=config.num_heads,
            attn_dim_head=config.d_model // config.num_heads, ff_mult=config.d_ff / config.d_model,
            max_seq_len=512, attn_flash=True, ff_dropout=config.dropout, emb_dropout=config.dropout,
            pre_norm=False,
        )  # fmt: skip
        sides = {f"{name}_{key}": value for name in ("enc", "dec") for key, value in side.items()}
        self.config = config
        library = require("x_transformers")
        self.model = library.XTransformer(dim=config.d_model, tie_token_emb=True, **sides)
        decoder = self.model.decoder.net
        decoder.to_logits.weight = decoder.token_emb.emb.weight

    def loss(self, batch: Batch) -> Tensor:
        """Compute the mean loss of a batch."""
        real = batch.source != self.config.pad_id
        memory = self.model.encoder(batch.source, mask=real, return_embeddings=True)
        logits = self.model.decoder.net(batch.target_input, context=memory, context_mask=real)
        return smoothed_loss(logits, batch, self.config)


#: The programs that are compared, by name.
PEERS: dict[str, type[Any]] = {
    OURS: Ours,
    OURS_ON_MKL: Ours,
    "torch.nn.Transformer": TorchTransformer,
    "Hugging Face Marian": HuggingFaceMarian,
    "x-transformers": XTransformers,
}
