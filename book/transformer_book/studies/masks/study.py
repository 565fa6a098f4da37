"""The toy translator with a causal mask that hides too little: it copies the answer it can see."""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from transformer import minimal
from transformer.data import toy
from transformer_book.studies.lacking import Missing, Runs, lacking
from transformer_book.toy_translator import SIZES, translate

RECORD = Path(__file__).parent / "record.json"

#: Number of later positions that the decoder sees, by the name of the mask.
MASKS = {"causal mask": 0, "one position too many": 1, "no mask": 99}
SEEDS = range(5)
TRAINING: dict[str, Any] = dict(steps=600, tokens=400, warmup=200, factor=0.4)


def seeing(future: int) -> Callable[[int], Tensor]:
    """Make a causal mask that shows so many later positions."""
    return lambda length: torch.ones(length, length, dtype=torch.bool).tril(future)


@contextmanager
def mask_in_use(future: int) -> Iterator[None]:
    """Put such a mask into the program inside a ``with`` block."""
    with patch.object(minimal, "causal_mask", seeing(future)):
        yield


def learn(future: int, seed: int) -> tuple[minimal.Transformer, float, list[toy.Sentence]]:
    """Train the toy translator under such a mask; return its last loss and the test as well."""
    random.seed(seed)
    torch.manual_seed(seed)
    lines, test = toy.corpus(seed=seed)
    pairs = [(toy.encode(english), toy.encode(german)) for english, german in lines]
    model = minimal.Transformer(len(toy.WORDS), **SIZES)
    with mask_in_use(future):
        losses = list(minimal.train(model, pairs, **TRAINING))
    return model, sum(losses[-100:]) / 100, test


@torch.no_grad()
def predicted(model: minimal.Transformer, english: list[str], german: list[str]) -> float:
    """Return the share of words, ends included, that a model predicts while it reads them."""
    target = [toy.encode(line) for line in german]
    shifted = minimal.pad([[minimal.BOS, *ids[:-1]] for ids in target])
    source, labels = minimal.pad([toy.encode(line) for line in english]), minimal.pad(target)
    guess = model.eval()(source, shifted).argmax(dim=-1)
    return (guess == labels)[labels != minimal.PAD].float().mean().item()


def measure(model: minimal.Transformer, test: list[toy.Sentence], future: int) -> dict[str, Any]:
    """Measure a model under a mask; each number is a share, from 0 to 1.

    Returns:
        ``given``: words that it predicts with the true German to read. ``copied``: the same with
        the German of another sentence, so that only a copy is right. ``generated``: sentences that
        it translates without a mistake. ``wide``: what it makes of the book's sentence.
    """
    english, german = [s.english for s in test], [s.german() for s in test]
    with mask_in_use(future):
        written = translate(model, english)
        return dict(
            given=predicted(model, english, german),
            copied=predicted(model, english, german[1:] + german[:1]),
            generated=sum(map(toy.Sentence.is_right, test, written)) / len(test),
            wide=translate(model, [toy.WIDE.english])[0],
        )


def numbers_of(
    runs: Iterable[Mapping[str, Any]], mask: str, name: str
) -> Float[np.ndarray, " seeds"]:
    """Return one recorded measurement per seed."""
    return np.array([run[name] for run in runs if run["mask"] == mask])


#: What the record says before its runs.
HEADING = dict(model=SIZES, training=TRAINING)


def missing(runs: Runs) -> Missing:
    """Train what a record lacks, and yield each run with a line about it."""
    for case in lacking(runs, seed=SEEDS, mask=MASKS):
        future = MASKS[case["mask"]]
        model, loss, test = learn(future, case["seed"])
        found = dict(loss=loss) | measure(model, test, future)
        yield case | found, f"{case}: {found}"
