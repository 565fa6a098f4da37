"""Vary the factor sqrt(d_model) and the initial embedding in a model that reverses or sorts."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from transformer.model.transformer import Transformer
from transformer.training.schedule import learning_rate
from transformer_book.studies.lacking import Missing, Runs, lacking
from transformer_book.studies.together import Together
from transformer_book.studies.toy import ToyTask, toy_config
from transformer_book.studies.training_loop import optimise

RECORD = Path(__file__).parent / "record.json"

TASKS = {
    "reverse": ToyTask(lambda symbols: symbols[::-1], shortest=5, longest=5),
    "sort": ToyTask(np.sort, shortest=5, longest=5),
}
D_MODEL = 64  # so that the factor is 8
STEPS = 900
BLOCK = 50  # steps over which the loss is averaged
BATCH = 24
WARMUP = 100
RATES = (0.3, 1.0, 3.0)  # factors of the learning rate of Eq. (3)
SEEDS = tuple(range(1, 11))


@dataclass(frozen=True)
class Start:
    """How tokens enter a model."""

    name: str  #: key in the record.
    factor: float  #: by which a looked-up row is multiplied.
    size: float  #: initial length of the rows, relative to about 1.

    def model(self, task: ToyTask) -> Transformer:
        """Make a model of one layer that shares one matrix for source, target and output."""
        made = Transformer(toy_config(task, d_model=D_MODEL, d_ff=D_MODEL))
        made.embedding.scale = self.factor
        with torch.no_grad():
            made.embedding.weight.mul_(self.size)
        return made


STARTS = (
    Start("paper", 8.0, 1.0),
    Start("no factor", 1.0, 1.0),
    Start("small start", 8.0, 1 / 8),
    Start("large start", 8.0, 8.0),
)


def learn(
    start: Start, task: str, rate: float = 1.0, seeds: Sequence[int] = SEEDS, steps: int = STEPS
) -> Float[np.ndarray, "seeds blocks"]:
    """Train models of one start."""
    models = Together(lambda: start.model(TASKS[task]), seeds)
    found = np.zeros((len(seeds), steps))

    def loss(step: int) -> Tensor:
        batches = [TASKS[task].batch(BATCH, seed=1_000_000 * seed + step) for seed in seeds]
        source, begun, labels = (
            torch.stack([getattr(batch, name) for batch in batches])
            for name in ("source", "target_input", "labels")
        )
        logits = models(source, begun)
        losses = F.cross_entropy(logits.flatten(0, 2), labels.flatten(), reduction="none")
        each = losses.view(len(seeds), -1).mean(dim=1)
        found[:, step - 1] = each.detach().numpy()
        return each.sum()

    optimise(models, loss, steps, lambda step: learning_rate(step, D_MODEL, WARMUP, rate))
    return found.reshape(len(seeds), -1, BLOCK).mean(axis=2)


def late_losses(runs: Runs) -> dict[tuple[str, str, float], Float[np.ndarray, "seeds"]]:
    """Return the recorded losses of the last 100 steps, by start, task and learning rate."""
    return {
        (run["start"], run["task"], run["rate"]): np.array(run["losses"])[:, -2:].mean(axis=1)
        for run in runs
    }


#: What the record says before its runs.
HEADING = dict(steps=STEPS, block=BLOCK, seeds=SEEDS)


def missing(runs: Runs) -> Missing:
    """Train what a record lacks, and yield each run with a line about it."""
    starts = {start.name: start for start in STARTS}
    for case in lacking(runs, rate=RATES, task=TASKS, start=starts):
        losses = learn(**case | dict(start=starts[case["start"]]))
        yield case | dict(losses=losses.tolist()), f"{case}: {losses[:, -2:].mean():.2f}"
