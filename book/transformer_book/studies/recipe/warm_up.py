"""Short training runs that begin with different learning rates, over a range of peaks."""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from transformer.data.corpora import load_corpus
from transformer.training.schedule import learning_rate
from transformer_book.studies import training
from transformer_book.studies.lacking import Missing, Runs, lacking
from transformer_book.studies.recording import SHIPPED, corpus_facts

RECORD = Path(__file__).parent / "warm_up.json"

#: The small model of the recorded study, for a few epochs.
PRESET = training.RECIPE.with_changes(num_layers=1, max_steps=200)

Start = Literal["climb", "peak", "half"]
#: The first 100 steps: a warm-up; the peak; or half of it, which is about the mean of the warm-up.
STARTS: tuple[Start, ...] = ("climb", "peak", "half")
PEAKS = (0.003, 0.006, 0.012, 0.024)  # the highest learning rate of a run
WARMUP = 100  # steps; 100 = 2 / (1 - beta2), the rule of Ma and Yarats
SEEDS = tuple(range(1, 9))
MEASURED = (100, 200)  # steps after which held-out perplexity is measured


def rate_of(start: Start, peak: float, step: int, d_model: int) -> float:
    """Return the learning rate of a step; after the first 100, it is the same for every start."""
    factor = peak * math.sqrt(d_model * WARMUP)
    if start == "climb" or step > WARMUP:
        return learning_rate(step, d_model, WARMUP, factor)
    return peak if start == "peak" else peak / 2


def run(peak: float, start: Start, seed: int, text: training.ShortText) -> dict[str, Any]:
    """Train once, with one learning rate in the first 100 steps or a climb to the peak."""
    preset = PRESET.with_changes(seed=seed)
    model = training.make_model(preset)
    kept = training.train(
        model, text.train, preset.training,
        rate=lambda step: rate_of(start, peak, step, model.config.d_model), keep=MEASURED,
    )  # fmt: skip
    scores = [training.quality(model, text.held_out, kept[step]).perplexity for step in MEASURED]
    return dict(peak=peak, start=start, seed=seed, perplexity=scores)


def perplexities(
    runs: Iterable[Mapping[str, Any]], peak: float, start: Start
) -> Float[np.ndarray, "seeds"]:
    """Return the recorded perplexities after training, in the order of the seeds."""
    found = {
        each["seed"]: each["perplexity"][-1]
        for each in runs
        if (each["peak"], each["start"]) == (peak, start)
    }
    return np.array([found[seed] for seed in sorted(found)])


SPLIT = "validation"


def heading() -> dict[str, Any]:
    """Return the corpus and the recipe in the record."""
    return dict(corpus=corpus_facts(load_corpus(SHIPPED), SPLIT), preset=PRESET.to_dict())


def missing(runs: Runs) -> Missing:
    """Train what a record lacks, and yield each run with a line about it."""
    text = training.short_text(load_corpus(SHIPPED), PRESET, split=SPLIT)
    for case in lacking(runs, seed=SEEDS, peak=PEAKS, start=STARTS):
        yield run(**case, text=text), str(case)
