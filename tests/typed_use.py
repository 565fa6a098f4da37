"""The public interface as a user's type checker sees it. Nothing here runs: mypy reads it.

Each ``assert_type`` fails in `make lint` if the type that a user gets is another one.
"""

from pathlib import Path
from typing import assert_type

import torch
from torch import Tensor

from transformer import (
    SearchOptions,
    Trainer,
    TrainingConfig,
    Transformer,
    TransformerConfig,
    Translator,
    beam_search,
    greedy_search,
    load_corpus,
)
from transformer.data.batching import TokenBatches
from transformer.data.parallel import Corpus
from transformer.inference.decoding import Hypothesis, length_penalty
from transformer.inference.results import AttentionWeights, Translation
from transformer.model.attention import scaled_dot_product_attention
from transformer.model.layers import DecoderLayer, EncoderLayer
from transformer.training.callbacks import EarlyStopping
from transformer.training.loss import TranslationLoss


def translating(texts: list[str]) -> None:
    translator = Translator.from_pretrained("tatoeba-en-de", revision="main")
    assert_type(translator, Translator)
    assert_type(translator.to("cpu"), Translator)
    assert_type(translator.device, torch.device)
    assert_type(translator("Where?", num_beams=2, length_penalty=1.0), str)
    best: list[Translation] = translator("Where?", return_scores=True, n_best=2)
    print(best[0].score)
    translator.translate(texts, SearchOptions(beam_size=1), split_sentences="en")
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


def saving(model: Transformer, translator: Translator, folder: Path) -> None:
    assert_type(translator.save_pretrained(folder, half=True), Path)
    assert_type(translator.push_to_hub("owner/name", private=True), str)
    assert_type(load_corpus("tatoeba-en-de"), Corpus)


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
    adam = torch.optim.AdamW(model.parameters())
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(adam, recipe.max_steps)
    Trainer(model, batches.pairs, recipe, folder, adam, cosine, [EarlyStopping(mode="min")])
    Trainer(model, batches, recipe, folder, torch.optim.AdamW, lambda step: 1e-3 / step)
    assert_type(trainer.checkpoints(), list[Path])
    TranslationLoss(trainer.model, epsilon=0.1)


def what_is_refused(model: Transformer, source: Tensor) -> None:
    # mypy says so too if one of these is not an error any more.
    Trainer(torch.nn.Linear(2, 2), 3, 4, "folder")  # type: ignore[arg-type]
    EarlyStopping(patience=3, mode="lowest")  # type: ignore[arg-type]
    TransformerConfig(vocab_size=100, norm="both")  # type: ignore[arg-type]
    beam_search(torch.nn.Linear(2, 2), source)  # type: ignore[call-overload]
    beam_search(model, source, penalty="none")  # type: ignore[call-overload]
    translator = Translator.from_pretrained("folder", revison="v1")  # type: ignore[call-arg]
    translator("Where?", beem_size=3)  # type: ignore[call-overload]
    translator("Where?", 4)  # type: ignore[call-overload]
    SearchOptions(beem_size=3)  # type: ignore[call-arg]
