"""One encoder on four tasks, beside rivals: three seeds each, in a record.

    python -m transformer.lab.beyond.study       five minutes on one core

All networks have the same inputs, steps, batches and learning rate, and about as many parameters.
Only the Transformer has dropout. None was tuned. Ctrl-C stops the recording; the same command
continues it.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
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
SEEDS = tuple(range(3))
BATCH_SIZE, RATE = 32, 5e-3

#: Tasks on which the encoder is trained without positions, too.
CONTROLLED = ("digits", "phrases")
#: Networks that are trained for four times as many steps, too, and with how many seeds by task.
LONGER, FACTOR = ("Transformer", "LSTM"), 4
LONGER_SEEDS = {"rivers": 3, "phrases": 1}

#: The encoder of all four tasks; its vocabulary is that of the task.
CONFIG = TransformerConfig(
    vocab_size=4, d_model=D_MODEL, d_ff=64, num_heads=4, num_layers=2, dropout=0.1
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
    "LSTM": lambda task: LSTMModel(task.embedding(), D_MODEL, task.outputs, task.each),
    "GRU + self-attention": lambda task: AttentiveGRU(
        task.embedding(), D_MODEL, task.outputs, task.each
    ),
}


def train(name: str, task: Task, seed: int, factor: int = 1) -> nn.Module:
    """Train a network on a task, for ``factor`` times the task's number of steps."""
    torch.manual_seed(seed)
    model = NETWORKS[name](task)

    def loss(rows: torch.Tensor) -> torch.Tensor:
        right = {kind: values[rows] for kind, values in task.answers.items()}
        return task.loss(model(task.inputs[rows]), right)

    train_by_rows(
        model, loss, len(task.inputs), factor * task.steps, BATCH_SIZE, rate=RATE, seed=seed
    )
    return model


def scores_of(
    runs: Iterable[Mapping[str, Any]], task: str, method: str, score: str
) -> Float[np.ndarray, " seeds"]:
    """Return a recorded score of a method, by seed; one value for a method without seeds."""
    found = [r for r in runs if (r["task"], r["method"]) == (task, method)]
    return np.array([run["scores"][score] for run in sorted(found, key=lambda run: run["seed"])])


def planned(seed: int) -> Iterator[tuple[str, str, int]]:
    """Yield task, network and factor of all runs of a seed."""
    for name in NAMES:
        for method in NETWORKS:
            if method != "without positions" or name in CONTROLLED:
                yield name, method, 1
    for name, seeds in LONGER_SEEDS.items():
        for method in LONGER if seed < seeds else ():
            yield name, method, FACTOR


def title(method: str, factor: int) -> str:
    """Return the name of a network in the record."""
    return method if factor == 1 else f"{method}, {factor} times the steps"


def main() -> None:
    """Record the runs that are missing, one seed of everything after the other."""
    options = parser(__doc__, RECORD)
    torch.set_num_threads(1)
    tasks = {name: load_task(name) for name in NAMES}
    recording = Recording(
        options.parse_args().output, "transformer.lab.beyond.study", digits=4,
        rate=RATE, batch_size=BATCH_SIZE, steps={name: task.steps for name, task in tasks.items()},
        sizes={name: [len(t.inputs), len(t.test_inputs)] for name, t in tasks.items()},
    )  # fmt: skip
    runs = recording.content.setdefault("runs", [])
    done = {(run["task"], run["method"], run["seed"]) for run in runs}
    for name, task in tasks.items():
        for method, make in (task.simple, ("gradient boosting", task.boosting)):
            if (name, method, SEEDS[0]) not in done:
                runs.append(dict(task=name, method=method, seed=SEEDS[0], scores=make()))
                recording.save(f"{name}, {method}: {runs[-1]['scores']}")
    for seed in SEEDS:
        for name, method, factor in planned(seed):
            key, task = title(method, factor), tasks[name]
            if (name, key, seed) in done:
                continue
            begun = time.process_time()
            model = train(method, task, seed, factor)
            scores = task.score(answers(model, task.test_inputs), task.test_answers)
            runs.append(
                dict(task=name, method=key, seed=seed, scores=scores,
                     parameters=count(model), seconds=time.process_time() - begun)
            )  # fmt: skip
            recording.save(f"{name}, {key}, {seed}: {scores}")
    recording.save("all runs are there")


def recorded_study(path: Path = RECORD) -> dict[str, Any]:
    """Read the record."""
    return read_record(path)


if __name__ == "__main__":
    main()
