"""Make the records of chapter 9: untrained stacks of 1 to 24 layers; training with warm-ups.

    python -m transformer_book.studies.residuals.record_depth  about eight minutes on one CPU core

Ctrl-C stops it, and the same command continues.
"""

import argparse
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import torch

from transformer.model.config import NormPlacement
from transformer_book.studies.recording import Recording
from transformer_book.studies.residuals import depth
from transformer_book.studies.residuals.warm_up import (
    LONGER,
    NORMS,
    PEAKS,
    RECORD,
    SEEDS,
    STEPS,
    WARMUPS,
    WINDOW,
    learn_together,
    make,
    schedule,
)

MODULE = "transformer_book.studies.residuals.record_depth"


def main() -> None:
    """Make what is missing in both records."""
    # No --output: there are two records.
    argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0]).parse_args()
    torch.set_num_threads(1)
    record_depth(depth.RECORD)
    record_warm_up(RECORD)


def record_depth(path: Path) -> None:
    """Record the probes of untrained stacks, one entry per kind and initialisation."""
    start = depth.start()
    recording = Recording(path, MODULE, tokens=start.tokens, seeds=depth.SEEDS)
    found = recording.content.setdefault("found", {})
    for init, (name, kind) in product(("fused", "separate"), depth.KINDS.items()):
        if name in found.setdefault(init, {}):
            continue
        depths = range(1, depth.DEEPEST + 1) if init == "fused" else ()
        probes = [depth.probe(start, kind, seed, depths, init) for seed in depth.SEEDS]  # type: ignore[arg-type]
        entry = {
            part: [[_short(x) for x in getattr(each, part)] for each in probes]
            for part in ("size", "likeness", "recognised")
        }
        if init == "fused":
            each = zip(*(probe.gradients for probe in probes), strict=True)
            entry["gradients"] = [[_short(x) for x in depth.level(one)] for one in each]
            entry["first"] = [[_short(row[0]) for row in p.gradients] for p in probes]
            entry["last"] = [[_short(row[-1]) for row in p.gradients] for p in probes]
        found[init][name] = entry
        recording.save(f"{init}, {name}")


def record_warm_up(path: Path) -> None:
    """Record the training runs with and without a warm-up, one entry per run."""
    recording = Recording(path, MODULE, digits=4, steps=STEPS, window=WINDOW)
    runs = recording.content.setdefault("runs", [])
    done = {(run["norm"], run["peak"]) for run in runs}
    for peak, norm in product(PEAKS, NORMS):
        if (norm, peak) not in done:
            runs += _train(norm, peak, WARMUPS, STEPS)
            recording.save(f"{norm}-norm, {peak}")
    if "longer" not in recording.content:
        recording.content["longer"] = _train("post", max(PEAKS), WARMUPS, LONGER)
        recording.save("longer")


def _train(
    norm: NormPlacement, peak: float, warmups: Sequence[int], steps: int
) -> list[dict[str, Any]]:
    """Train all seeds with each warm-up, side by side, and return an entry per run."""
    ways = list(product(SEEDS, warmups))
    losses = learn_together(
        [make(norm, seed) for seed, _ in ways],
        [schedule(peak, warmup) for _, warmup in ways],
        [seed for seed, _ in ways],
        steps,
    )
    windows = losses.reshape(len(ways), -1, WINDOW).mean(axis=2)
    return [
        dict(norm=norm, peak=peak, warmup=warmup, seed=seed, losses=curve.tolist())
        for (seed, warmup), curve in zip(ways, windows, strict=True)
    ]


def _short(number: float) -> float:
    return float(f"{number:.4g}")


if __name__ == "__main__":
    main()
