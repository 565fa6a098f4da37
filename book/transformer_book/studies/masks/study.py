"""Transformers trained with and without the causal mask, tested with the truth and on their own."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from transformer.data.batching import Batch
from transformer.inference.decoding import greedy_search
from transformer.training.schedule import learning_rate
from transformer_book.studies.lacking import Missing, Runs, lacking
from transformer_book.studies.masks.influence import influence
from transformer_book.studies.masks.peeking import PeekingTransformer
from transformer_book.studies.toy import PAD, ToyTask, recited, toy_config, train_toy

RECORD = Path(__file__).parent / "record.json"

# Three to six of ten symbols, to be written backwards.
TASK = ToyTask(lambda symbols: symbols[::-1], symbols=10, shortest=3, longest=6)

#: Number of later positions that the decoder sees, by the name of the mask.
MASKS = {"causal mask": 0, "one position too many": 1, "no mask": 99}
STEPS = (250, 1000)  # training steps before each measurement
SEEDS = tuple(range(1, 11))
WARMUP = 100
BATCH = 32


def learn(
    mask: str, seed: int, steps: Sequence[int] = STEPS, size: int = 200
) -> tuple[PeekingTransformer, list[dict[str, float]]]:
    """Train a model and measure it at given steps. Adam starts afresh after each measurement."""
    torch.manual_seed(seed)
    model = PeekingTransformer(toy_config(TASK), MASKS[mask])
    found, done = [], 0
    for goal in steps:
        start = done

        def rate(step: int, start: int = start) -> float:
            return learning_rate(start + step, model.config.d_model, WARMUP)

        losses = train_toy(model, TASK, goal - done, BATCH, seed=1000 * seed + goal, rate=rate)
        done = goal
        found.append(dict(loss=float(losses[-20:].mean())) | measure(model, size))
    return model, found


def measure(model: PeekingTransformer, size: int = 200) -> dict[str, float]:
    """Measure a model on new sequences; each number is a share, from 0 to 1.

    Returns:
        ``forced``: sequences with every symbol right when the true symbols before it are given.
        ``generated``: sequences that greedy search writes without a mistake. ``empty``: sequences
        of which it writes nothing. ``causal forced`` and ``causal generated``: the same under the
        causal mask, whatever the mask in training. ``source``: the source's share of the influence
        of source and target on the logits. ``label``: outputs that depend on their own label more
        than on any other target input, among those whose label is an input.
    """
    model.eval()
    batch = TASK.batch(size, seed=10**12 + 1)
    written = greedy_search(model, batch.source, batch.labels.size(1) + 5)
    found = {
        "forced": forced(model, batch),
        "generated": recited(model, batch),
        "empty": sum(one.tokens == [] for one in written) / size,
    }
    with seeing(model, 0):
        found |= {"causal forced": forced(model, batch), "causal generated": recited(model, batch)}
    return found | dependence(model)


@torch.no_grad()
def forced(model: torch.nn.Module, batch: Batch) -> float:
    """Return the share of sequences with every symbol right under teacher forcing."""
    guess = model(batch.source, batch.target_input).argmax(dim=-1)
    right = (guess == batch.labels) | (batch.labels == PAD)
    return right.all(dim=1).sum().item() / len(right)


def dependence(model: PeekingTransformer, pairs: int = 5) -> dict[str, float]:
    """Measure ``source`` and ``label`` of :func:`measure` on sequences of six symbols."""
    batch = TASK.batch(pairs, seed=7, length=6)
    source, label = [], []
    for ids, target in zip(batch.source, batch.target_input, strict=True):
        to_target, to_source = influence(model, ids[None], target[None])
        source.append((to_source.sum() / (to_source.sum() + to_target.sum())).item())
        places = torch.arange(len(target) - 1)
        label.append((to_target[:-1].argmax(dim=1) == places + 1).float().mean().item())
    return dict(source=float(np.mean(source)), label=float(np.mean(label)))


@contextmanager
def seeing(model: PeekingTransformer, future: int) -> Iterator[None]:
    """Change how many later positions a model sees inside a ``with`` block."""
    usual, model.future = model.future, future
    try:
        yield
    finally:
        model.future = usual


def numbers_of(
    runs: Iterable[Mapping[str, Any]], mask: str, name: str
) -> Float[np.ndarray, "seeds steps"]:
    """Return one recorded measurement for all seeds and steps, of shape (seeds, steps)."""
    found = [run["found"] for run in runs if run["mask"] == mask]
    return np.array([[step[name] for step in run] for run in found])


#: What the record says before its runs.
HEADING = dict(steps=STEPS)


def missing(runs: Runs) -> Missing:
    """Train what a record lacks, and yield each run with a line about it."""
    for case in lacking(runs, seed=SEEDS, mask=MASKS):
        _, found = learn(**case)
        yield case | dict(found=found), f"{case}: {found[-1]}"
