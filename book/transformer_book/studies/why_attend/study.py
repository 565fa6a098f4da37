"""Recurrent translators with and without attention learn to reverse sequences."""

from collections.abc import Sequence
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
#: Whether the decoder attends, and the numbers in its state; without attention, it gets one vector
#: of that size.
READERS = {
    "attention": (True, 64),
    "one vector": (False, 64),
    "one vector, four times the size": (False, 256),
}
LENGTHS = tuple(range(TASK.shortest, TASK.longest + 1))
STEPS = (250, 500, 1000, 2000)  # training steps after which the model is measured
FACTORS = (0.0625, 0.125, 0.25, 0.5, 1.0)  # of the learning rate of Eq. (3)
HEADING = dict(steps=STEPS, lengths=LENGTHS)


def learn(
    reader: str, seed: int, factor: float = 1.0, steps: Sequence[int] = STEPS, size: int = 200
) -> tuple[RecurrentTranslator, list[list[float]]]:
    """Train a translator and measure it on the way. Adam starts afresh after each measurement."""
    torch.manual_seed(seed)
    attends, numbers = READERS[reader]
    model = RecurrentTranslator(RecurrentConfig(TASK.vocab_size, 64, numbers, attention=attends))
    shares: list[list[float]] = []
    for start, goal in zip((0, *steps), steps, strict=False):

        def rate(step: int, start: int = start) -> float:
            return learning_rate(start + step, 64, 100, factor)

        train_toy(model, TASK, goal - start, 32, seed=1000 * seed + goal, rate=rate)
        shares.append([exact_match(model, TASK, size, length=length) for length in LENGTHS])
    return model, shares


def best(runs: Runs, reader: str, step: int) -> Float[np.ndarray, "seeds lengths"]:
    """Return a reader's recorded shares at the learning rate with the best mean."""
    mine = [run for run in runs if run["reader"] == reader]
    shares = [[run["shares"] for run in mine if run["factor"] == each] for each in FACTORS]
    tried = np.array(shares)[:, :, STEPS.index(step)]  # (factors, seeds, lengths)
    found: np.ndarray = tried[tried.mean(axis=(1, 2)).argmax()]
    return found


def missing(runs: Runs) -> Missing:
    """Train what a record lacks, and yield each run with a line about it."""
    for case in lacking(runs, seed=(1, 2, 3, 4, 5), reader=READERS, factor=FACTORS):
        model, shares = learn(**case)
        found: dict[str, Any] = case | dict(parameters=model.num_parameters(), shares=shares)
        yield found, f"{case}: {shares[-1]}"
