"""Toy tasks: sequences of symbols to reverse or rearrange, learned in seconds."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from transformer.data.batching import Batch
from transformer.inference.decoding import greedy_search
from transformer.model.base import TranslationModel
from transformer.model.config import TransformerConfig
from transformer.training.loss import TranslationLoss
from transformer.training.schedule import learning_rate
from transformer_book.studies.training_loop import optimise

PAD, BOS, EOS = 0, 1, 2
FIRST_SYMBOL = 3


@dataclass(frozen=True)
class ToyTask:
    """A rule from one sequence of symbols to another."""

    rule: Callable[[np.ndarray], np.ndarray]
    symbols: int = 12
    shortest: int = 4
    longest: int = 10

    @property
    def vocab_size(self) -> int:
        """Number of ids: the symbols, padding, BOS and EOS."""
        return FIRST_SYMBOL + self.symbols

    def batch(self, size: int, seed: int, length: int | None = None) -> Batch:
        """Draw ``size`` pairs; the same seed draws the same pairs."""
        random = np.random.default_rng(seed)
        low, high = (self.shortest, self.longest) if length is None else (length, length)
        lengths = random.integers(low, high + 1, size)
        symbols = random.integers(FIRST_SYMBOL, self.vocab_size, lengths.sum())
        sources = np.split(symbols, lengths.cumsum()[:-1])
        targets = [np.asarray(self.rule(source)) for source in sources]
        source, labels = _ended(sources), _ended(targets)
        before = np.roll(labels, 1, axis=1)
        before[before == EOS] = PAD
        before[:, 0] = BOS
        return Batch(
            torch.from_numpy(source),
            torch.from_numpy(before),
            torch.from_numpy(labels),
            int((source != PAD).sum()),
            int((labels != PAD).sum()),
        )


REVERSE = ToyTask(lambda symbols: symbols[::-1])


def toy_config(task: ToyTask, **changes: object) -> TransformerConfig:
    """Make a configuration that learns a toy task in seconds: 1 layer, d_model 64, 4 heads."""
    small = dict(d_model=64, d_ff=128, num_heads=4, num_layers=1, dropout=0.0)
    return TransformerConfig.from_dict(dict(vocab_size=task.vocab_size) | small | changes)


def train_toy(
    model: TranslationModel,
    task: ToyTask,
    steps: int = 300,
    batch_size: int = 64,
    seed: int = 0,
    rate: float | Callable[[int], float] | None = None,
    warmup_steps: int = 100,
    epsilon: float = 0.0,
) -> np.ndarray:
    """Train a model on fresh pairs and return the losses."""
    objective = TranslationLoss(model, epsilon)

    def loss(step: int) -> Tensor:
        batch = task.batch(batch_size, seed=seed * 1_000_000 + step)
        total, _ = objective(batch.source, batch.target_input, batch.labels)
        return total / batch.num_target_tokens

    def schedule(step: int) -> float:
        if rate is None:
            return learning_rate(step, model.config.d_model, warmup_steps)
        return rate(step) if callable(rate) else rate

    return np.array(optimise(model, loss, steps, schedule))


def exact_match(
    model: TranslationModel,
    task: ToyTask,
    size: int = 200,
    seed: int = -1,
    length: int | None = None,
) -> float:
    """Return the share of new sources whose greedy translation is right in every symbol."""
    return recited(model, task.batch(size, seed=10**12 - seed, length=length))


def recited(model: TranslationModel, batch: Batch) -> float:
    """Return the share of a batch's sources whose greedy translation equals the target."""
    hypotheses = greedy_search(model, batch.source, batch.labels.size(1) + 5)
    right = sum(
        found.tokens == [token for token in labels.tolist() if token not in (PAD, EOS)]
        for found, labels in zip(hypotheses, batch.labels, strict=True)
    )
    return right / len(hypotheses)


@torch.no_grad()
def teacher_forced_accuracy(
    model: TranslationModel, task: ToyTask, size: int = 200, seed: int = -1
) -> float:
    """Return the share of target tokens that are predicted correctly under teacher forcing."""
    batch = task.batch(size, seed=10**12 - seed)
    guess = model(batch.source, batch.target_input).argmax(dim=-1)
    real = batch.labels != PAD
    return (guess == batch.labels)[real].float().mean().item()


def _ended(rows: list[np.ndarray]) -> np.ndarray:
    """Stack rows of different length: an EOS after each, then padding."""
    lengths = np.array([len(row) for row in rows])
    stacked = np.full((len(rows), lengths.max() + 1), PAD)
    stacked[np.arange(stacked.shape[1]) < lengths[:, None]] = np.concatenate(rows)
    stacked[np.arange(len(rows)), lengths] = EOS
    return stacked
