"""Compare numbers of heads on four lookups: ten seeds, equal parameters, three training lengths."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from transformer.recording import record_attention
from transformer_book.studies.heads.lookups import (
    LookupModel,
    Lookups,
    right_answers,
    train_lookups,
)

RECORD = Path(__file__).parent / "record.json"

# Eight objects on a table, each in one of eight colours; a query asks for four at once.
TASK = Lookups(slots=4, entries=8, keys=16, values=8)

D_MODEL = 32
BATCH = 32
SEEDS = tuple(range(1, 11))
HEADS = (1, 2, 4, 8, 16)
STEPS = (250, 1000, 4000)
LONGER = 16_000  # steps of one head: does it learn all four lookups?
RATES = (0.00125, 0.0025, 0.005, 0.01, 0.02)
HIDDEN = 128  # units of the readout


@dataclass(frozen=True)
class Setting:
    """The settings that a set of runs shares; the runs differ in their seed."""

    heads: int  #: number of attention heads.
    steps: int  #: number of training steps, over which the learning rate falls linearly to zero.
    rate: float  #: learning rate of the first step.


SETTINGS = (
    *(Setting(*case) for case in product(HEADS, STEPS, RATES)),
    *(Setting(1, LONGER, rate) for rate in RATES),
)


def learn(setting: Setting, seed: int) -> LookupModel:
    """Train one model on fresh tables."""
    torch.manual_seed(seed)
    model = LookupModel(TASK, setting.heads, D_MODEL, HIDDEN)
    train_lookups(model, setting.steps, BATCH, seed, setting.rate)
    return model


@torch.no_grad()
def weight_on_slots(
    model: LookupModel, size: int = 2000, seed: int = 10**12
) -> Float[Tensor, "heads slots"]:
    """Return each head's mean weight on the entry that each slot asks for."""
    asked, table, _ = model.task.batch(size, seed)
    with record_attention(model) as recorded:
        model(asked, table)
    (weights,) = recorded.values()
    here = (table[:, None, :, 0] == asked[:, :, None]).float()
    return (weights[:, :, 0] @ here.mT).mean(dim=0)


def found(runs: Iterable[Mapping[str, Any]], setting: Setting) -> Float[np.ndarray, " seeds"]:
    """Return a setting's recorded shares of right answers, one per seed."""
    [run] = [run for run in runs if asdict(setting).items() <= run.items()]
    return np.array(run["right"])


def best(runs: Sequence[Mapping[str, Any]], heads: int, steps: int) -> Setting:
    """Return the setting with the learning rate whose mean share of right answers is highest."""
    tried = [Setting(heads, steps, rate) for rate in RATES]
    return max(tried, key=lambda setting: found(runs, setting).mean())


#: What the record says before its runs.
HEADING = dict(seeds=SEEDS, d_model=D_MODEL, batch=BATCH)


def missing(runs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    """Train what a record lacks, and yield each run with a line about it."""
    for setting in SETTINGS:
        if any(asdict(setting).items() <= run.items() for run in runs):
            continue
        models = [learn(setting, seed) for seed in SEEDS]
        right = [right_answers(model).mean().item() for model in models]
        run = asdict(setting) | dict(right=right)
        if setting.heads == TASK.slots:
            run["weight_on_slots"] = [weight_on_slots(model).tolist() for model in models]
        yield run, f"{setting}: {sum(right) / len(right):.3f}"
