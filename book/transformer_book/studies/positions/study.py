"""Name the symbol to your left: a task that needs order and nothing else."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from transformer.model.config import Positions, TransformerConfig
from transformer.model.transformer import Transformer
from transformer.training.schedule import learning_rate
from transformer_book.studies.training_loop import optimise

RECORD = Path(__file__).parent / "record.json"

SYMBOLS, FIRST_SYMBOL = 13, 3
WINDOW = 16  # symbols of a training sequence
ROWS = 256  # of the learned table
PLACES = (0, 8, 16, 24, 32, 40, 48, 64, 96, 128, 160, 200, 240)  # first positions of test windows
LONG = 128  # symbols of a longer test sequence
STEPS = (250, 500, 1000, 2000)  # training steps after which the model is measured
FACTORS = (0.5, 0.25, 1.0)  # of the learning rate of Eq. (3); the first is the main one
SEEDS = tuple(range(1, 11))
WARMUP, BATCH = 100, 16
HELD_OUT = 99  # seed of the test sequences


@dataclass(frozen=True)
class Way:
    """The kind of positions that a model has, and how many of them training uses."""

    positions: Positions  #: as in :class:`~transformer.model.config.TransformerConfig`.
    #: number of positions in training. Every batch begins at a position drawn so that its windows
    #: end below this one; 16 means that all begin at 0.
    trained: int

    def model(self, seed: int) -> Transformer:
        """Make a model with random weights. Its decoder is not used."""
        torch.manual_seed(seed)
        return Transformer(
            TransformerConfig(
                FIRST_SYMBOL + SYMBOLS,
                d_model=64,
                d_ff=128,
                num_heads=4,
                num_layers=1,
                dropout=0.0,
                positions=self.positions,
                max_length=ROWS,
            )
        )


WAYS = (
    Way("none", 16),
    Way("learned", 16),
    Way("sinusoidal", 16),
    Way("learned", 64),
    Way("sinusoidal", 64),
)


def windows(
    count: int, generator: torch.Generator, length: int = WINDOW
) -> tuple[Int[Tensor, "count length"], Int[Tensor, "count length"]]:
    """Draw random symbols, and for each the symbol to its left; 0 for the first, which has none."""
    ids = torch.randint(FIRST_SYMBOL, FIRST_SYMBOL + SYMBOLS, (count, length), generator=generator)
    left = ids.roll(1, dims=1)
    left[:, 0] = 0
    return ids, left


def run(model: Transformer, ids: Int[Tensor, "B T"], start: int = 0) -> Float[Tensor, "B T V"]:
    """Encode a window that begins at position ``start``, and return logits of the left symbol."""
    x = model.positions(model.embedding(ids), start)
    for layer in model.encoder:
        x = layer(x)
    logits: Tensor = x @ model.embedding.weight.T
    return logits


@torch.no_grad()
def right_answers(
    model: Transformer, start: int = 0, length: int = WINDOW, count: int = 128
) -> Float[np.ndarray, "places"]:
    """Return the share of right answers at each place of new windows except the first."""
    ids, left = windows(count, torch.Generator().manual_seed(HELD_OUT), length)
    named = run(model, ids, start).argmax(dim=-1)
    shares: np.ndarray = (named == left)[:, 1:].double().mean(dim=0).numpy()
    return shares


def learn(
    way: Way, seed: int, factor: float = FACTORS[0], steps: Sequence[int] = STEPS
) -> tuple[Transformer, list[dict[str, list[float]]]]:
    """Train a model, and measure it after each of ``steps`` on windows and on longer sequences."""
    model, generator = way.model(seed), torch.Generator().manual_seed(1000 + seed)
    measured = []

    def measure() -> None:
        longer = [np.nan, *right_answers(model, length=LONG, count=32)]
        measured.append(
            dict(
                windows=[float(right_answers(model, place).mean()) for place in PLACES],
                longer=np.nanmean(np.reshape(longer, (-1, WINDOW)), axis=1).tolist(),
            )
        )

    def loss(step: int) -> Tensor:
        if step - 1 in steps:
            measure()
        start = int(torch.randint(way.trained - WINDOW + 1, (), generator=generator))
        ids, left = windows(BATCH, generator)
        return F.cross_entropy(run(model, ids, start).flatten(0, 1), left.flatten(), ignore_index=0)

    optimise(model, loss, steps[-1], lambda step: learning_rate(step, 64, WARMUP, factor))
    measure()
    return model, measured


def shares_of(
    runs: Iterable[Mapping[str, Any]], way: Way, test: str, factor: float = FACTORS[0]
) -> Float[np.ndarray, "seeds steps places"]:
    """Return the recorded shares of a way in one test, of shape (seeds, steps, places)."""
    return np.array(
        [
            [each[test] for each in run["measured"]]
            for run in sorted(runs, key=lambda run: run["seed"])
            if (run["positions"], run["trained"], run["factor"])
            == (way.positions, way.trained, factor)
        ],
        dtype=float,
    )


def inside_and_beyond(
    runs: Iterable[Mapping[str, Any]], way: Way, trained: int, factor: float = FACTORS[0]
) -> dict[str, Float[np.ndarray, "seeds steps"]]:
    """Average the recorded shares inside and beyond the first ``trained`` positions."""
    runs, places = list(runs), np.array(PLACES)
    windows = shares_of(runs, way, "windows", factor)
    longer = shares_of(runs, way, "longer", factor)
    return {
        "windows inside": windows[..., places + WINDOW <= trained].mean(axis=-1),
        "windows beyond": windows[..., places >= trained].mean(axis=-1),
        "sequence inside": longer[..., : trained // WINDOW].mean(axis=-1),
        "sequence beyond": longer[..., trained // WINDOW :].mean(axis=-1),
    }


#: What the record says before its runs.
HEADING = dict(steps=STEPS, places=PLACES, long=LONG)


def missing(runs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    """Train what a record lacks, and yield each run with a line about it."""
    done = {(run["positions"], run["trained"], run["factor"], run["seed"]) for run in runs}
    for factor, seed, way in product(FACTORS, SEEDS, WAYS):
        if (way.positions, way.trained, factor, seed) in done:
            continue
        _, measured = learn(way, seed, factor)
        run = dict(positions=way.positions, trained=way.trained, factor=factor, seed=seed)
        yield run | dict(measured=measured), f"{way}, {factor}, seed {seed}: {measured[-1]}"
