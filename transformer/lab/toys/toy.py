"""Toy tasks: sequences of symbols to reverse, copy or sort, small enough to learn in seconds.

They have right answers, so that a model can be said to solve them, and no words, so that nothing
is learned but what the architecture can do.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from transformer.data.batching import Batch
from transformer.inference.decoding import greedy_search
from transformer.inference.stepwise import StepwiseModel
from transformer.model.config import TransformerConfig
from transformer.model.interface import TranslationModel
from transformer.training.loss import TranslationLoss
from transformer.training.progress import progress
from transformer.training.schedule import learning_rate

PAD, BOS, EOS = 0, 1, 2
FIRST_SYMBOL = 3


@dataclass(frozen=True)
class ToyTask:
    """A rule from one sequence of symbols to another.

    Args:
        rule: takes the symbols of one source, an integer array, and returns those of its target.
        symbols: how many different symbols there are; their ids start at 3.
        shortest: least number of symbols in a source.
        longest: largest number of symbols in a source.
    """

    rule: Callable[[np.ndarray], np.ndarray]
    symbols: int = 12
    shortest: int = 4
    longest: int = 10

    @property
    def vocab_size(self) -> int:
        """Number of ids, that is the symbols, padding, begin and end."""
        return FIRST_SYMBOL + self.symbols

    def batch(self, size: int, seed: int, length: int | None = None) -> Batch:
        """Draw ``size`` pairs; the same seed draws the same pairs.

        Args:
            size: number of pairs.
            seed: of the draw.
            length: of every source; random between ``shortest`` and ``longest`` if None.
        """
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
COPY = ToyTask(lambda symbols: symbols)
SORT = ToyTask(np.sort)


def toy_config(task: ToyTask, **changes: object) -> TransformerConfig:
    """Make a configuration that learns a toy task in seconds: 1 layer, d_model 64, 4 heads.

    Args:
        task: its vocabulary is the model's.
        changes: fields to set otherwise.
    """
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
    """Train a model on fresh pairs and return the losses, in nats a token.

    Args:
        model: trained in place, and left in evaluation mode.
        task: where pairs come from; no pair is drawn twice on purpose.
        steps: optimiser steps.
        batch_size: pairs a step.
        seed: of the pairs. Seed the weights before the model is made.
        rate: a constant learning rate, or a function of the step, counted from 1; None takes
            Eq. (3).
        warmup_steps: of Eq. (3).
        epsilon: label smoothing.

    Returns:
        The loss of each step, of shape (steps,).

    Paper: section 5
    """
    objective = TranslationLoss(model, epsilon)
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
    model.train()
    losses = []
    for step in progress(range(1, steps + 1)):
        batch = task.batch(batch_size, seed=seed * 1_000_000 + step)
        if rate is None:
            now = learning_rate(step, model.config.d_model, warmup_steps)
        else:
            now = rate(step) if callable(rate) else rate
        for group in optimizer.param_groups:
            group["lr"] = now
        total, _ = objective(batch.source, batch.target_input, batch.labels)
        loss = total / batch.num_target_tokens
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    return np.array(losses)


def exact_match(
    model: StepwiseModel, task: ToyTask, size: int = 200, seed: int = -1, length: int | None = None
) -> float:
    """Return the share of new sources whose greedy translation is right in every symbol.

    Args:
        model: the model.
        task: where sources come from.
        size: number of sources.
        seed: of the sources; negative ones are never used in training.
        length: of every source; random if None.
    """
    return recited(model, task.batch(size, seed=10**12 - seed, length=length))


def recited(model: StepwiseModel, batch: Batch) -> float:
    """Return the share of a batch's sources whose greedy translation is the batch's own.

    Args:
        model: the model.
        batch: the pairs.
    """
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
    """Return the share of target tokens that are guessed right, given the true ones before.

    Args:
        model: a model that maps (source, target) to logits.
        task: where pairs come from.
        size: number of pairs.
        seed: of the pairs; negative ones are never used in training.

    Paper: section 3.1
    """
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
