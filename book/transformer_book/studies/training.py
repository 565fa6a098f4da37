"""Short training runs on real text with one change each, and their measurements."""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_norm_

from transformer import fast
from transformer.data.batching import EncodedPairs, TokenBatches, encode_pairs
from transformer.data.parallel import Corpus, Split
from transformer.data.progress import progress
from transformer.data.tokenizer import Tokenizer
from transformer.model.base import evaluation_mode
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer.recipes.presets import Preset
from transformer.training.config import TrainingConfig
from transformer.training.loss import TranslationLoss
from transformer.training.schedule import learning_rate
from transformer.training.stream import step_batches

Weights = dict[str, Tensor]

#: The paper's recipe for a model that trains in seconds, at half the learning rate of Eq. (3). The
#: full rate would peak at 0.0125 for a model this small, eighteen times that of base.
RECIPE = Preset(
    "recipe-in-small",
    TransformerConfig(1000, d_model=64, d_ff=128, num_heads=4, num_layers=2),
    TrainingConfig(
        max_steps=1000,
        batch_tokens=512,
        warmup_steps=100,
        learning_rate_factor=0.5,
        save_every=20,
        keep_last=5,
    ),
    train_pairs=5000,
    beam_size=1,
)


@dataclass(frozen=True)
class ShortText:
    """Short sentence pairs to train on, and others to measure on."""

    tokenizer: Tokenizer
    train: EncodedPairs
    held_out: EncodedPairs
    text: Split


def short_text(
    corpus: Corpus, preset: Preset = RECIPE, longest: int = 4, split: str = "validation"
) -> ShortText:
    """Take the short pairs of a corpus: everyday phrases, learnable in seconds."""
    short = _short(corpus.train, longest)
    order = np.random.default_rng(0).permutation(len(short))
    train = _first([short[i] for i in order], preset.train_pairs, "train_pairs", longest)
    text = _first(_short(corpus.splits[split], longest), preset.test_pairs, "test_pairs", longest)
    tokenizer = Tokenizer.train((side for pair in short for side in pair), preset.model.vocab_size)
    return ShortText(tokenizer, encode_pairs(tokenizer, train), encode_pairs(tokenizer, text), text)


def _short(split: Split, longest: int) -> list[tuple[str, str]]:
    return [pair for pair in split if max(len(side.split()) for side in pair) <= longest]


def _first(pairs: list[tuple[str, str]], size: int | None, name: str, longest: int) -> Split:
    if len(pairs) < (size or 1):
        raise ValueError(
            f"{name} must be at most {len(pairs)}, the pairs of no more than {longest} words, "
            f"got {size}"
        )
    return Split(*map(list, zip(*pairs[:size], strict=True)))


def make_model(preset: Preset = RECIPE) -> Transformer:
    """Make the model of a preset, with weights drawn from the preset's seed."""
    assert isinstance(preset.model, TransformerConfig)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(preset.training.seed)
        return Transformer(preset.model)


def train(
    model: Transformer,
    pairs: EncodedPairs,
    config: TrainingConfig,
    rate: Callable[[int], float] | None = None,
    keep: Collection[int] = (),
) -> dict[int, Weights]:
    """Train as :class:`~transformer.training.trainer.Trainer` does; return the weights to keep."""
    if config.fast:
        fast.enable(model)
    batches = TokenBatches(pairs, config.batch_tokens, config.seed)
    objective = TranslationLoss(model, config.label_smoothing, config.smoothing)
    parameters = list(model.parameters())
    optimizer = torch.optim.Adam(
        parameters, betas=(config.beta1, config.beta2), eps=config.adam_eps, fused=True
    )
    kept: dict[int, Weights] = {}
    model.train()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        stream = step_batches(batches, config.accumulate)
        for step in progress(range(1, config.max_steps + 1)):
            now = _rate(step, model.config.d_model, config) if rate is None else rate(step)
            optimizer.param_groups[0]["lr"] = now
            group = next(stream)[0]
            count = sum(batch.num_target_tokens for batch in group)
            for batch in group:
                loss, _ = objective(batch.source, batch.target_input, batch.labels)
                (loss / count).backward()
            if config.clip_norm is not None:
                clip_grad_norm_(parameters, config.clip_norm)
            optimizer.step()
            optimizer.zero_grad()
            if step in keep:
                kept[step] = copy_weights(model)
    model.eval()
    return kept


def _rate(step: int, d_model: int, config: TrainingConfig) -> float:
    return learning_rate(step, d_model, config.warmup_steps, config.learning_rate_factor)


def copy_weights(model: nn.Module) -> Weights:
    """Copy a model's weights, so that further training leaves them unchanged."""
    return {name: tensor.detach().clone() for name, tensor in model.state_dict().items()}


@dataclass(frozen=True)
class Quality:
    """Quality of a model's predictions under teacher forcing."""

    #: exp of the mean negative log-likelihood per token, without label smoothing.
    perplexity: float
    accuracy: float  #: share of the tokens that are the model's first choice.
    confidence: float  #: mean probability of the first choice.


@torch.no_grad()
def quality(model: Transformer, pairs: EncodedPairs, weights: Weights | None = None) -> Quality:
    """Measure perplexity, accuracy and confidence on some pairs."""
    if weights is not None:
        model.load_state_dict(weights)
    batches = TokenBatches(pairs, batch_tokens=4096)
    total = torch.zeros(3, dtype=torch.float64)
    tokens = 0
    with evaluation_mode(model):
        for rows in batches.epoch(0):
            batch = batches.batch(rows)
            logits = model(batch.source, batch.target_input)
            real = batch.labels != model.config.pad_id
            log_p, labels = logits[real].log_softmax(dim=-1), batch.labels[real]
            best, choice = log_p.max(dim=-1)
            nll = -log_p.gather(1, labels[:, None]).sum()
            total += torch.stack([nll, (choice == labels).sum(), best.exp().sum()])
            tokens += len(labels)
    nll, accuracy, confidence = (total / tokens).tolist()
    return Quality(math.exp(min(nll, 700.0)), accuracy, confidence)
