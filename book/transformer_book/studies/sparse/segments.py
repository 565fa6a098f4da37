"""Segment recurrence with four kinds of positions: which of them still works beyond training."""

from pathlib import Path
from typing import Any

import torch

from transformer_book.studies.lacking import Missing, Runs, lacking
from transformer_book.studies.sparse.delayed_echo import Echo, echo_accuracy, train_echo
from transformer_book.studies.sparse.segment_recurrence import SegmentModel

RECORD = Path(__file__).parent / "segments.json"

#: Positions of a segment, of the memory, and between a token and its repetition.
SEGMENT, MEMORY, DELAY = 8, 16, 12
#: Segments of a stream in training and in the test.
TRAINED, TESTED = 8, 40
#: The arguments of the model for each kind, by its name.
KINDS: dict[str, dict[str, Any]] = {
    "no memory": dict(memory_length=0),
    "positions restart": dict(memory_length=MEMORY, positions="restarting"),
    "positions continue": dict(memory_length=MEMORY, positions="continuing"),
    "distances": dict(memory_length=MEMORY),
}
SEEDS = (1, 2, 3, 4)
STEPS = 420

#: What the record says before its runs.
HEADING = dict(segment=SEGMENT, memory=MEMORY, delay=DELAY, trained=TRAINED, steps=STEPS)


def learn(kind: str, seed: int, steps: int = STEPS) -> list[float]:
    """Train a model of one layer; return its accuracy in each segment that can have an answer."""
    torch.manual_seed(seed)
    model = SegmentModel(8, num_heads=1, **KINDS[kind])
    train_echo(model, Echo(DELAY), SEGMENT, TRAINED, steps=steps, rate=1e-2, seed=seed)
    return echo_accuracy(model, Echo(DELAY), SEGMENT, TESTED)[2:].tolist()


def missing(runs: Runs) -> Missing:
    """Train what a record lacks, and yield each run with a line about it."""
    for case in lacking(runs, seed=SEEDS, kind=KINDS):
        right = learn(**case)
        yield case | dict(right=right), f"{case}: {right[0]:.2f} to {right[-1]:.2f}"
