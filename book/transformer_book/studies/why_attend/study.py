"""Recurrent translators with and without attention learn to reverse sequences."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float

from transformer.baselines import RecurrentConfig, RecurrentTranslator
from transformer.training.schedule import learning_rate
from transformer_book.studies.lacking import Missing, Runs, lacking
from transformer_book.studies.toy import ToyTask, exact_match, train_toy

RECORD = Path(__file__).parent / "record.json"

# Two to nine of twelve symbols, to be written backwards.
TASK = ToyTask(lambda symbols: symbols[::-1], shortest=2, longest=9)

LENGTHS = tuple(range(TASK.shortest, TASK.longest + 1))
STEPS = (250, 500, 1000, 2000)  # training steps after which the model is measured
FACTORS = (0.0625, 0.125, 0.25, 0.5, 1.0)  # of the learning rate of Eq. (3)
SEEDS = (1, 2, 3, 4, 5)
WARMUP = 100
BATCH = 32


@dataclass(frozen=True)
class Reader:
    """How the decoder reads the source."""

    name: str
    attention: bool  #: whether it attends; if not, it gets one vector.
    size: int  #: numbers in the decoder's state, and so in that vector.

    def model(self, seed: int) -> RecurrentTranslator:
        """Make the translator with weights drawn from a seed."""
        torch.manual_seed(seed)
        config = RecurrentConfig(TASK.vocab_size, 64, self.size, attention=self.attention)
        return RecurrentTranslator(config)


READERS = (
    Reader("attention", True, 64),
    Reader("one vector", False, 64),
    Reader("one vector, four times the size", False, 256),
)


def learn(
    reader: Reader, seed: int, factor: float = 1.0, steps: Sequence[int] = STEPS, size: int = 200
) -> tuple[RecurrentTranslator, list[list[float]]]:
    """Train a translator and measure it on the way. Adam starts afresh after each measurement."""
    model, shares, done = reader.model(seed), [], 0

    for goal in steps:
        start = done

        def rate(step: int, start: int = start) -> float:
            return learning_rate(start + step, 64, WARMUP, factor)

        train_toy(model, TASK, goal - done, BATCH, seed=1000 * seed + goal, rate=rate)
        done = goal
        shares.append([exact_match(model, TASK, size, length=length) for length in LENGTHS])
    return model, shares


def shares_of(
    runs: Iterable[Mapping[str, Any]], reader: str, factor: float
) -> Float[np.ndarray, "seeds steps lengths"]:
    """Return the recorded shares of a reader, of shape (seeds, steps, lengths)."""
    found = [run["shares"] for run in runs if (run["reader"], run["factor"]) == (reader, factor)]
    return np.array(found)


#: What the record says before its runs.
HEADING = dict(steps=STEPS, lengths=LENGTHS)


def missing(runs: Runs) -> Missing:
    """Train what a record lacks, and yield each run with a line about it."""
    readers = {reader.name: reader for reader in READERS}
    for case in lacking(runs, seed=SEEDS, reader=readers, factor=FACTORS):
        model, shares = learn(**case | dict(reader=readers[case["reader"]]))
        run = case | dict(parameters=model.num_parameters(), shares=shares)
        yield run, f"{case}: {shares[-1]}"
