"""Name the symbol to your left: a task that needs order and nothing else."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from transformer.model.config import Positions, TransformerConfig
from transformer.model.transformer import Transformer
from transformer.training.schedule import learning_rate
from transformer_book.figures import figure, plot_runs
from transformer_book.palette import PALE
from transformer_book.statistics import paired_interval
from transformer_book.studies.training_loop import optimise

RECORD = Path(__file__).parent / "record.json"

SYMBOLS, FIRST_SYMBOL = 13, 3
WINDOW, LONG = 16, 128  # symbols of a training sequence, and of a longer test sequence
PLACES = (0, 8, 16, 24, 32, 40, 48, 64, 96, 128, 160, 200, 240)  # first positions of test windows
STEPS = (250, 500, 1000, 2000)  # training steps after which the model is measured
FACTORS = (0.5, 0.25, 1.0)  # of the learning rate of Eq. (3); the first is the main one
SEEDS = range(1, 11)
# The kind of positions, and how many training uses: its windows begin anywhere and end below.
WAYS: tuple[tuple[Positions, int], ...] = (
    ("none", 16), ("learned", 16), ("sinusoidal", 16), ("learned", 64), ("sinusoidal", 64),
)  # fmt: skip


def windows(count: int, generator: torch.Generator, length: int = WINDOW) -> tuple[Tensor, Tensor]:
    """Draw random symbols, and for each the symbol to its left; 0 for the first, which has none."""
    ids = torch.randint(FIRST_SYMBOL, FIRST_SYMBOL + SYMBOLS, (count, length), generator=generator)
    left = ids.roll(1, dims=1)
    left[:, 0] = 0
    return ids, left


def run(model: Transformer, ids: Tensor, start: int = 0) -> Tensor:
    """Encode symbols that begin at position ``start``, and return logits of the left symbol."""
    x = model.positions(model.embedding(ids), start)
    for layer in model.encoder:
        x = layer(x)
    logits: Tensor = x @ model.embedding.weight.T
    return logits


@torch.no_grad()
def right_answers(model: Transformer, start: int, length: int, count: int) -> np.ndarray:
    """Return the share of right answers at each place of new sequences except the first."""
    ids, left = windows(count, torch.Generator().manual_seed(99), length)
    right = run(model, ids, start).argmax(dim=-1) == left
    shares: np.ndarray = right[:, 1:].double().mean(dim=0).numpy()
    return shares


def learn(
    positions: Positions, trained: int, seed: int, factor: float
) -> list[dict[str, list[float]]]:
    """Train an encoder of one layer; measure it on windows and on longer sequences."""
    torch.manual_seed(seed)
    sizes: dict[str, Any] = dict(d_model=64, d_ff=128, num_heads=4, num_layers=1, dropout=0.0)
    model = Transformer(
        TransformerConfig(FIRST_SYMBOL + SYMBOLS, positions=positions, max_length=256, **sizes)
    )
    generator, measured = torch.Generator().manual_seed(1000 + seed), []

    def measure() -> None:
        along = [np.nan, *right_answers(model, 0, LONG, count=32)]
        measured.append(
            dict(
                windows=[float(right_answers(model, p, WINDOW, 128).mean()) for p in PLACES],
                longer=np.nanmean(np.reshape(along, (-1, WINDOW)), axis=1).tolist(),
            )
        )

    def loss(step: int) -> Tensor:
        if step - 1 in STEPS:
            measure()
        start = int(torch.randint(trained - WINDOW + 1, (), generator=generator))
        ids, left = windows(16, generator)
        return F.cross_entropy(run(model, ids, start).flatten(0, 1), left.flatten(), ignore_index=0)

    optimise(model, loss, STEPS[-1], lambda step: learning_rate(step, 64, 100, factor))
    measure()
    return measured


def shares(
    runs: Sequence[Mapping[str, Any]], positions: str, trained: int, factor: float = FACTORS[0]
) -> dict[str, Float[np.ndarray, "seeds steps places"]]:
    """Return the recorded shares of right answers, inside and beyond ``trained`` positions."""
    way: dict[str, Any] = dict(positions=positions, factor=factor)
    way["trained"] = 16 if positions == "none" else trained
    found = [run["measured"] for run in runs if way.items() <= run.items()]
    short, long = (
        np.array([[each[test] for each in one] for one in found]) for test in ("windows", "longer")
    )
    places, blocks = np.array(PLACES), trained // WINDOW
    return {
        "windows inside": short[..., places + WINDOW <= trained],
        "windows beyond": short[..., places >= trained],
        "sequence inside": long[..., :blocks],
        "sequence beyond": long[..., blocks:],
    }


def lead(
    runs: Sequence[Mapping[str, Any]], trained: int, test: str, step: int = -1,
    factor: float = FACTORS[0], form: str = "+z.2f",
) -> str:  # fmt: skip
    """Write the lead of sinusoids over the learned table, with its interval, paired by seed."""
    ours, theirs = (
        shares(runs, kind, trained, factor)[test][:, step].mean(axis=-1)
        for kind in ("sinusoidal", "learned")
    )
    low, high = paired_interval(ours - theirs)
    return f"{(ours - theirs).mean():{form}} ({low:{form}} to {high:{form}})"


def along_a_sequence(runs: Sequence[Mapping[str, Any]]) -> None:
    """Draw the shares of right answers along a sequence that is longer than any in training."""
    panels: Any = figure(1, 2, height=3.4, sharey=True)[1]
    for axes, trained in zip(panels, (16, 64), strict=True):
        for kind, colour, line in (
            ("sinusoidal", "purple", "-"), ("learned", "brown", "--"), ("none", "grey", ":"),
        ):  # fmt: skip
            found = shares(runs, kind, trained)
            both = [found["sequence inside"], found["sequence beyond"]]
            right = np.concatenate(both, axis=-1)[:, -1]
            plot_runs(axes, np.arange(15, LONG, WINDOW), right, colour, kind, ls=line, marker=".")
        axes.axvspan(0, trained - 1, color=PALE, zorder=0)
        axes.set(title=f"trained on positions 0 to {trained - 1}", xlabel="position")
        axes.set(ylim=(-0.03, 1.05), xticks=[0, 32, 64, 96, 127])
    panels[0].set_yticks([0, 0.5, 1], ["0", "50%", "100%"])
    panels[0].set_ylabel("right answers")
    panels[1].legend(loc="upper right")
    plt.show()


#: What the record says before its runs.
HEADING = dict(steps=STEPS, places=PLACES, long=LONG)


def missing(runs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    """Train what a record lacks, and yield each run with a line about it."""
    for factor, seed, (positions, trained) in product(FACTORS, SEEDS, WAYS):
        case = dict(positions=positions, trained=trained, factor=factor, seed=seed)
        if not any(case.items() <= run.items() for run in runs):
            measured = learn(positions, trained, seed, factor)
            yield case | dict(measured=measured), f"{case}: {measured[-1]}"
