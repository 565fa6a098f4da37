"""The public interface as a user's type checker sees it. Nothing here runs: mypy reads it.

Each ``assert_type`` fails in `make lint` if the type that a user gets is another one.
"""

from pathlib import Path
from typing import assert_type

import torch
from torch import Tensor

from transformer.data.batching import TokenBatches
from transformer.inference.decoding import (
    Hypothesis,
    beam_search,
    greedy_search,
    length_penalty,
)
from transformer.inference.translator import AttentionWeights, Translator
from transformer.model.attention import scaled_dot_product_attention
from transformer.model.config import TransformerConfig
from transformer.model.layers import DecoderLayer, EncoderLayer
from transformer.model.transformer import Transformer
from transformer.training.config import TrainingConfig
from transformer.training.loss import TranslationLoss
from transformer.training.trainer import Trainer


def translating() -> None:
    translator = Translator.from_pretrained("tatoeba-en-de")
    assert_type(translator, Translator)
    assert_type(translator.translate("Where is the station?"), str)
    assert_type(translator.translate(["Where?", "There."], beam_size=1), list[str])
    assert_type(translator.translate(line for line in ("Where?", "There.")), list[str])
    assert_type(translator("Where?", alpha=1.0, penalty="fairseq"), str)
    assert_type(translator(["Where?"]), list[str])
    assert_type(translator.attention("Where?"), AttentionWeights)


def making_a_model() -> Transformer:
    config = TransformerConfig(vocab_size=100, d_model=32, num_heads=4, num_layers=2)
    model = Transformer(config)
    assert_type(model.config, TransformerConfig)
    assert_type([layer for layer in model.encoder], list[EncoderLayer])
    assert_type(model.decoder[0], DecoderLayer)
    assert_type(Transformer.from_pretrained("folder"), Transformer)
    return model


def attending(query: Tensor, key: Tensor, value: Tensor) -> None:
    assert_type(scaled_dot_product_attention(query, key, value, scale=1.0), Tensor)
    _, weights = scaled_dot_product_attention(query, key, value, need_weights=True)
    assert_type(weights, Tensor)


def searching(model: Transformer, source: Tensor) -> None:
    assert_type(greedy_search(model, source), list[Hypothesis])
    assert_type(beam_search(model, source, 4, 0.6), list[Hypothesis])
    assert_type(beam_search(model, source, n_best=3), list[list[Hypothesis]])
    assert_type(length_penalty(7, 0.6), float)
    assert_type(length_penalty(torch.arange(7), 0.6, "fairseq"), Tensor)


def training(model: Transformer, batches: TokenBatches, folder: Path) -> None:
    recipe = TrainingConfig(max_steps=100, precision="bf16")
    trainer = Trainer(model, batches, recipe, folder, score=lambda trained: {"bleu": 0.0})
    assert_type(trainer.fit(), bool)
    assert_type(trainer.checkpoints(), list[Path])
    TranslationLoss(trainer.model, epsilon=0.1)


def what_is_refused(model: Transformer, source: Tensor) -> None:
    # mypy says so too if one of these is not an error any more.
    Trainer(torch.nn.Linear(2, 2), 3, 4, "folder")  # type: ignore[arg-type]
    TransformerConfig(vocab_size=100, norm="both")  # type: ignore[arg-type]
    beam_search(torch.nn.Linear(2, 2), source)  # type: ignore[call-overload]
    beam_search(model, source, penalty="none")  # type: ignore[call-overload]
