"""The same model in three libraries, each trained and decoded the way its users do.

Same sizes, one matrix for both embeddings and the output, dropout 0.1, label smoothing 0.1, Adam.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.data.batching import Batch
from transformer.inference.decoding import beam_search, greedy_search
from transformer.model.config import TransformerConfig
from transformer.model.masks import causal_mask
from transformer.model.positional import sinusoidal_table
from transformer.model.transformer import Transformer
from transformer.training.loss import TranslationLoss

DECODED_TOKENS = 20  # every peer produces exactly as many, so that weights need no training


class Ours:
    """This package."""

    def __init__(self, config: TransformerConfig):
        self.model = Transformer(config)
        # An <eos> with an embedding of zeros has logit 0 and does not win against 8,000 others.
        with torch.no_grad():
            self.model.output_weight[config.eos_id] = 0
        self.objective = TranslationLoss(self.model)

    def loss(self, batch: Batch) -> Tensor:
        total, _ = self.objective(batch.source, batch.target_input, batch.labels)
        return total / batch.num_target_tokens

    def greedy(self, source: Tensor) -> int:
        return sum(len(h.tokens) for h in greedy_search(self.model, source, DECODED_TOKENS))

    def beam(self, source: Tensor) -> int:
        found = beam_search(self.model, source, 4, max_length=DECODED_TOKENS)
        return sum(len(h.tokens) for h in found)


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

    def logits(self, source: Tensor, target: Tensor) -> Tensor:
        memory, padding = self.encode(source)
        return self.decode(target, memory, padding) @ self.model.embedding.weight.T

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        padding = source == self.config.pad_id  # True = hidden, in this library
        return self.model.core.encoder(self.embed(source), src_key_padding_mask=padding), padding

    def decode(self, target: Tensor, memory: Tensor, padding: Tensor) -> Tensor:
        hidden = ~causal_mask(target.size(1))
        return self.model.core.decoder(
            self.embed(target),
            memory,
            tgt_mask=hidden,
            tgt_is_causal=True,
            memory_key_padding_mask=padding,
        )

    def loss(self, batch: Batch) -> Tensor:
        logits = self.logits(batch.source, batch.target_input)
        return F.cross_entropy(
            logits.flatten(0, 1),
            batch.labels.flatten(),
            ignore_index=self.config.pad_id,
            label_smoothing=0.1,
        )

    @torch.inference_mode()
    def greedy(self, source: Tensor) -> int:
        """Decode as its users must: the library has no cache."""
        self.model.eval()
        memory, padding = self.encode(source)
        target = source.new_full((len(source), 1), self.config.bos_id)
        for _ in range(DECODED_TOKENS):
            last = self.decode(target, memory, padding)[:, -1] @ self.model.embedding.weight.T
            target = torch.cat([target, last.argmax(-1, keepdim=True)], dim=1)
        self.model.train()
        return target[:, 1:].numel()

    beam = None  # nor a beam search


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
        return F.cross_entropy(
            logits.flatten(0, 1),
            batch.labels.flatten(),
            ignore_index=self.config.pad_id,
            label_smoothing=0.1,
        )

    def greedy(self, source: Tensor) -> int:
        return self._generate(source, 1)

    def beam(self, source: Tensor) -> int:
        return self._generate(source, 4)

    @torch.inference_mode()
    def _generate(self, source: Tensor, beams: int) -> int:
        self.model.eval()
        output = self.model.generate(
            input_ids=source,
            attention_mask=(source != self.config.pad_id).long(),
            num_beams=beams,
            do_sample=False,
            max_new_tokens=DECODED_TOKENS,
            min_new_tokens=DECODED_TOKENS,
        )
        self.model.train()
        return output[:, 1:].numel()


PEERS = {
    "transformer (this package)": Ours,
    "torch.nn.Transformer": TorchTransformer,
    "transformers MarianMT": HuggingFaceMarian,
}
