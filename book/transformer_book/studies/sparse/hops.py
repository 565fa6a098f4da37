"""What sparse attention can learn: a token that some number of hops away has to be repeated."""

from dataclasses import dataclass
from itertools import product
from pathlib import Path

import torch
from jaxtyping import Int
from torch import Tensor

from transformer_book.studies.lacking import Missing, Runs, lacking
from transformer_book.studies.sparse.delayed_echo import Echo, echo_accuracy, train_echo
from transformer_book.studies.sparse.segment_recurrence import SegmentModel

RECORD = Path(__file__).parent / "hops.json"

SEEDS = tuple(range(1, 11))


def near(distance: Tensor) -> Tensor:
    """Let a position see itself and the seven before it."""
    return distance < 8


def near_or_strided(distance: Tensor) -> Tensor:
    """Let a position see what :func:`near` does, and every eighth position before it."""
    return (distance < 8) | (distance % 8 == 0)


def everything(distance: Tensor) -> Tensor:
    """Let a position see all before it."""
    return distance >= 0


PATTERNS = {
    "window of 8": near,
    "window and stride of 8": near_or_strided,
    "all positions": everything,
}


@dataclass(frozen=True)
class Case:
    """A pattern, a number of layers, and the distance of the token to be repeated."""

    pattern: str
    layers: int
    distance: int
    steps: int = 200
    rate: float = 7e-3

    def chains(self) -> Int[Tensor, " distances"]:
        """Count the chains of hops, or stays, that bridge each distance, with one per layer."""
        hop = PATTERNS[self.pattern](torch.arange(self.distance + 1))
        found = torch.zeros(self.distance + 1, dtype=torch.long)
        found[0] = 1
        for _ in range(self.layers):
            longer = torch.zeros_like(found)
            for far in hop.nonzero().flatten().tolist():
                longer[far:] += found[: self.distance + 1 - far]
            found = longer
        return found


CASES = (
    Case("window of 8", 1, 14),
    Case("window of 8", 2, 14),
    Case("window of 8", 3, 14),
    Case("window of 8", 2, 20),
    Case("window and stride of 8", 2, 20),
    Case("window of 8", 3, 20),
    Case("all positions", 3, 20),
    *(
        Case("window of 8", 3, distance, steps=3000, rate=rate)
        for distance, rate in product((18, 20, 21), (4e-3, 2e-3, 1e-3))
    ),
)

#: What the record says before its runs.
HEADING = dict(task="repeat one of eight symbols", segment=32)


def learn(case: Case, seed: int) -> float:
    """Train a small model with the pattern; return its accuracy on new streams."""
    torch.manual_seed(seed)
    model = SegmentModel(8, num_layers=case.layers, pattern=PATTERNS[case.pattern])
    task = Echo(case.distance)
    train_echo(model, task, 32, 1, steps=case.steps, streams=12, rate=case.rate, seed=seed)
    return float(echo_accuracy(model, task, 32, segments=1)[0])


def missing(runs: Runs) -> Missing:
    """Train what a record lacks, and yield each run with a line about it."""
    for case in lacking(runs, case=range(len(CASES)), seed=SEEDS):
        right = learn(CASES[case["case"]], case["seed"])
        yield case | dict(right=right), f"{CASES[case['case']]}, {case['seed']}: {right:.3f}"
