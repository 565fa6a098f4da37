"""One encoder on four tasks, beside rivals: five seeds each, in a record.

    python -m transformer.lab.beyond.study       half an hour on one core

All networks have the same inputs, batches and dropout, and about as many parameters. Each is
trained with several learning rates, and for the task's number of steps and four times as many.
Ctrl-C stops the recording; the same command continues it.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from transformer.lab.beyond.encoder_model import EncoderModel, answers, train_by_rows
from transformer.lab.beyond.rivals import AttentiveGRU, LSTMModel, count
from transformer.lab.beyond.tasks import D_MODEL, NAMES, Task, load_task
from transformer.lab.recording import Recording, parser
from transformer.model.config import TransformerConfig
from transformer.model.positional import NoPositions
from transformer.recipes.record import read_record

RECORD = Path(__file__).with_name("study.json")
SEEDS = tuple(range(5))
BATCH_SIZE, RATE, DROPOUT = 32, 5e-3, 0.1

#: Tasks on which the encoder is trained without positions, too.
CONTROLLED = ("digits", "phrases")
#: Networks that are trained with several learning rates, and the rates: by the factor on the
#: number of steps.
RIVALS, FACTOR = ("Transformer", "LSTM", "GRU + self-attention"), 4
RATES = {1: (RATE, 1e-2, 2e-2, 4e-2), FACTOR: (2e-3, RATE, 1e-2, 2e-2)}

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


def train(name: str, task: Task, seed: int, rate: float = RATE, factor: int = 1) -> nn.Module:
    """Train a network on a task, for ``factor`` times the task's number of steps."""
    torch.manual_seed(seed)
    model = NETWORKS[name](task)

    def loss(rows: torch.Tensor) -> torch.Tensor:
        right = {kind: values[rows] for kind, values in task.answers.items()}
        return task.loss(model(task.inputs[rows]), right)

    train_by_rows(
        model, loss, len(task.inputs), factor * task.steps, BATCH_SIZE, rate=rate, seed=seed
    )
    return model


def runs_of(
    runs: Iterable[Mapping[str, Any]], task: str, method: str, rate: float = RATE, factor: int = 1
) -> list[Mapping[str, Any]]:
    """Return the recorded runs of a method, by seed; a method that is not a network has one."""
    wanted = (task, method, rate, factor)
    found = [run for run in runs if _case(run) == wanted]
    return sorted(found, key=lambda run: run["seed"])


def scores_of(
    runs: Iterable[Mapping[str, Any]],
    task: str,
    method: str,
    score: str,
    rate: float = RATE,
    factor: int = 1,
) -> Float[np.ndarray, " seeds"]:
    """Return a recorded score of a method, by seed; one value for a method without seeds."""
    found = runs_of(runs, task, method, rate, factor)
    return np.array([run["scores"][score] for run in found], dtype=float)


def best_rate(
    runs: Iterable[Mapping[str, Any]], task: str, method: str, score: str, factor: int = 1
) -> float:
    """Return the learning rate with the highest mean score on the test set."""
    return max(
        RATES[factor],
        key=lambda rate: scores_of(runs, task, method, score, rate, factor).mean(),
    )


def planned() -> Iterator[tuple[str, str, float, int]]:
    """Yield task, network, learning rate and factor of all runs of a seed."""
    for name in NAMES:
        for method in NETWORKS:
            if method != "without positions" or name in CONTROLLED:
                yield name, method, RATE, 1
    for factor, rates in RATES.items():
        for name, method, rate in product(NAMES, RIVALS, rates):
            if (rate, factor) != (RATE, 1):
                yield name, method, rate, factor


def _case(run: Mapping[str, Any]) -> tuple[str, str, float, int]:
    """Return what a run was of; a method that is not a network has no learning rate."""
    return run["task"], run["method"], run.get("rate", RATE), run.get("factor", 1)


def main() -> None:
    """Record the runs that are missing, one seed of everything after the other."""
    options = parser(__doc__, RECORD)
    torch.set_num_threads(1)
    tasks = {name: load_task(name) for name in NAMES}
    recording = Recording(
        options.parse_args().output, "transformer.lab.beyond.study", digits=4,
        rate=RATE, batch_size=BATCH_SIZE, dropout=DROPOUT,
        steps={name: task.steps for name, task in tasks.items()},
        sizes={name: [len(t.inputs), len(t.test_inputs)] for name, t in tasks.items()},
    )  # fmt: skip
    runs = recording.content.setdefault("runs", [])
    done = {(*_case(run), run["seed"]) for run in runs}
    for name, task in tasks.items():
        for method, make in (task.simple, ("gradient boosting", task.boosting)):
            if (name, method, RATE, 1, SEEDS[0]) not in done:
                runs.append(dict(task=name, method=method, seed=SEEDS[0], scores=make()))
                recording.save(f"{name}, {method}: {runs[-1]['scores']}")
    for seed, case in product(SEEDS, planned()):
        if (*case, seed) in done:
            continue
        name, method, rate, factor = case
        task, begun = tasks[name], time.process_time()
        model = train(method, task, seed, rate, factor)
        scores = task.score(answers(model, task.test_inputs), task.test_answers)
        runs.append(
            dict(task=name, method=method, rate=rate, factor=factor, seed=seed, scores=scores,
                 parameters=count(model), seconds=time.process_time() - begun)
        )  # fmt: skip
        recording.save(f"{name}, {method}, rate {rate:g}, {factor} times, seed {seed}: {scores}")
    recording.save("all runs are there")


def recorded_study(path: Path = RECORD) -> dict[str, Any]:
    """Read the record."""
    return read_record(path)


if __name__ == "__main__":
    main()
