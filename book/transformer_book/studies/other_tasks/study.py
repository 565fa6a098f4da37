"""One encoder on four tasks beside rivals: rates chosen on validation, then ten seeds each."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from transformer.model.config import TransformerConfig
from transformer.model.positional import NoPositions
from transformer.recipes.record import read_record
from transformer_book.studies.other_tasks.encoder_model import EncoderModel, answers, train_by_rows
from transformer_book.studies.other_tasks.rivals import AttentiveGRU, LSTMModel, count
from transformer_book.studies.other_tasks.tasks import D_MODEL, NAMES, PARTS, Part, Task, load_task
from transformer_book.studies.recording import rounded

RECORD = Path(__file__).with_name("record.json")
SEEDS, TRIED = tuple(range(10)), 3  #: The first seeds also try the learning rates.
BATCH_SIZE, DROPOUT = 32, 0.1
DIGITS = 4  #: Decimals of a score in the record.
WARMUP = 0.1  #: Share of the steps in which the learning rate rises.

#: Tasks on which the encoder is trained without positions, too.
CONTROLLED = ("digits", "phrases")
RIVALS = ("Transformer", "LSTM", "GRU + self-attention")
FACTOR = 4  #: On the number of steps, in the long training.
#: The learning rates that are tried, by the factor on the number of steps.
RATES = {1: (2e-3, 5e-3, 1e-2, 2e-2, 4e-2), FACTOR: (1e-3, 2e-3, 5e-3, 1e-2, 2e-2)}

#: The encoder of all four tasks; its vocabulary is that of the task.
CONFIG = TransformerConfig(
    vocab_size=4, d_model=D_MODEL, d_ff=64, num_heads=4, num_layers=2, dropout=DROPOUT
)


def encoder(task: Task) -> nn.Module:
    """Make the encoder with the inputs and the head of a task."""
    return EncoderModel(CONFIG, task.embedding(), task.outputs, task.each)


def unplaced(task: Task) -> nn.Module:
    """Make the encoder without positions: the control."""
    model = EncoderModel(CONFIG, task.embedding(), task.outputs, task.each)
    model.positions = NoPositions()
    return model


#: The networks, by the names in the record.
NETWORKS: Mapping[str, Callable[[Task], nn.Module]] = {
    "Transformer": encoder,
    "without positions": unplaced,
    "LSTM": lambda task: LSTMModel(task.embedding(), D_MODEL, task.outputs, task.each, DROPOUT),
    "GRU + self-attention": lambda task: AttentiveGRU(
        task.embedding(), D_MODEL, task.outputs, each=task.each, dropout=DROPOUT
    ),
}


def train(name: str, task: Task, seed: int, rate: float, factor: int = 1) -> nn.Module:
    """Train a network on a task, for ``factor`` times the task's number of steps."""
    torch.manual_seed(seed)
    model, steps = NETWORKS[name](task), factor * task.steps

    def loss(rows: torch.Tensor) -> torch.Tensor:
        right = {kind: values[rows] for kind, values in task.answers.items()}
        return task.loss(model(task.inputs[rows]), right)

    warmup = round(WARMUP * steps)
    train_by_rows(model, loss, len(task.inputs), steps, BATCH_SIZE, rate, warmup, seed)
    return model


Runs = Sequence[Mapping[str, Any]]


def scores_of(
    runs: Runs,
    task: str,
    method: str,
    factor: int = 1,
    part: str = "test",
    rate: float | None = None,
) -> Float[np.ndarray, " seeds"]:
    """Return the recorded scores of a method, by seed; one value for a method without seeds."""
    found = [
        run
        for run in runs
        if (run["task"], run["method"], run["factor"], run["part"]) == (task, method, factor, part)
        and rate in (None, run.get("rate"))
    ]
    found.sort(key=lambda run: run.get("seed", 0))
    # The first score is the one by which methods are compared.
    return np.array([next(iter(run["scores"].values())) for run in found], dtype=float)


def chosen_rate(runs: Runs, task: str, method: str, factor: int = 1) -> float:
    """Return the learning rate with the highest mean score on the validation set."""
    return max(
        RATES[factor],
        key=lambda rate: scores_of(runs, task, method, factor, "validation", rate).mean(),
    )


def cases() -> list[tuple[str, str, int]]:
    """List task, network and factor of all training runs."""
    return [
        (name, method, factor)
        for factor, name, method in product(RATES, NAMES, NETWORKS)
        if method != "without positions" or name in CONTROLLED
    ]


def heading() -> dict[str, Any]:
    """Return the settings and the sizes of the tasks in the record."""
    tasks = {part: {name: load_task(name, part) for name in NAMES} for part in PARTS}
    return dict(
        batch_size=BATCH_SIZE,
        dropout=DROPOUT,
        warmup=WARMUP,
        steps={name: task.steps for name, task in tasks["test"].items()},
        sizes={
            part: {name: [len(t.inputs), len(t.test_inputs)] for name, t in some.items()}
            for part, some in tasks.items()
        },
    )


def missing(runs: Runs) -> Iterator[tuple[dict[str, Any], str]]:
    """Train what a record lacks, and yield each run with a line about it."""
    tasks = {(name, part): load_task(name, part) for name in NAMES for part in PARTS}
    names = ("task", "method", "factor", "part", "rate", "seed")
    done = {tuple(run.get(name) for name in names) for run in runs}

    def tested(name: str, method: str, factor: int, part: Part, rate: float, seed: int) -> Any:
        case, task = (name, method, factor, part, rate, seed), tasks[name, part]
        if case not in done:
            begun = time.process_time()
            model = train(method, task, seed, rate, factor)
            # Rates are chosen from these numbers, so they are as in the file when it is resumed.
            found = rounded(task.score(answers(model, task.test_inputs), task.test_answers), DIGITS)
            spent = dict(parameters=count(model), seconds=time.process_time() - begun)
            run = dict(zip(names, case, strict=True))
            yield run | dict(scores=found) | spent, f"{run}: {found}"

    for name in NAMES:
        for method, make in (
            tasks[name, "test"].simple,
            ("gradient boosting", tasks[name, "test"].boosting),
        ):
            if (name, method, 1, "test", None, None) not in done:
                run = dict(task=name, method=method, factor=1, part="test")
                scores = make()
                yield run | dict(scores=scores), f"{run}: {scores}"
    for name, method, factor in cases():
        for seed, rate in product(SEEDS[:TRIED], RATES[factor]):
            yield from tested(name, method, factor, "validation", rate, seed)
        rate = chosen_rate(runs, name, method, factor)  # of the runs that were just recorded, too
        for seed in SEEDS:
            yield from tested(name, method, factor, "test", rate, seed)


def recorded_study(path: Path = RECORD) -> dict[str, Any]:
    """Read the record."""
    return read_record(path)
