"""Short training runs with and without a warm-up, over a range of learning rates.

Paper: section 5.3
"""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from transformer.lab.recipe.training import RECIPE, ShortText, held_rate, make_model, quality, train
from transformer.training.schedule import learning_rate

RECORD = Path(__file__).parent / "warm_up.json"

#: The small model of the recorded study, for a few epochs.
PRESET = RECIPE.with_changes(num_layers=1, max_steps=200)

PEAKS = (0.003, 0.006, 0.012, 0.024)  # the highest learning rate of a run
WARMUP = 100  # steps; 100 = 2 / (1 - beta2), the rule of Ma and Yarats
SEEDS = tuple(range(1, 9))
MEASURED = (100, 200)  # steps after which held-out perplexity is measured
MOVES = (1, 2, 5, 10, 20, 50, 100, 150, 200)  # steps whose length is recorded


def run(peak: float, warm_up: bool, seed: int, text: ShortText) -> dict[str, Any]:
    """Train once; without a warm-up the peak is held for as many steps, then both decay equally.

    Returns:
        "perplexity" on held-out text after the steps of ``MEASURED``, and "moves", the root mean
        square change of the weights in the steps of ``MOVES``, in units of the learning rate.
    """
    preset = PRESET.with_changes(seed=seed)
    schedule = learning_rate if warm_up else held_rate
    model = make_model(preset)
    size = model.config.d_model
    factor = peak * math.sqrt(size * WARMUP)
    found = train(
        model, text.train, preset.training,
        rate=lambda step: schedule(step, size, WARMUP, factor), keep=MEASURED,
    )  # fmt: skip
    scores = [quality(model, text.held_out, found.snapshots[step]) for step in MEASURED]
    return dict(
        peak=peak,
        warm_up=warm_up,
        seed=seed,
        perplexity=[score.perplexity for score in scores],
        moves=[float(found.moves[step - 1]) for step in MOVES],
    )


def perplexities(
    runs: Iterable[Mapping[str, Any]], peak: float, warm_up: bool
) -> Float[np.ndarray, "seeds steps"]:
    """Return the recorded perplexities of one way to train, a row per seed in rising order."""
    return _of_seeds(runs, peak, warm_up, "perplexity")


def moves(
    runs: Iterable[Mapping[str, Any]], peak: float, warm_up: bool
) -> Float[np.ndarray, "seeds steps"]:
    """Return the recorded lengths of the steps in ``MOVES``, a row per seed in rising order."""
    return _of_seeds(runs, peak, warm_up, "moves")


def _of_seeds(
    runs: Iterable[Mapping[str, Any]], peak: float, warm_up: bool, name: str
) -> np.ndarray:
    found = {
        each["seed"]: each[name]
        for each in runs
        if (each["peak"], each["warm_up"]) == (peak, warm_up)
    }
    return np.array([found[seed] for seed in sorted(found)])
