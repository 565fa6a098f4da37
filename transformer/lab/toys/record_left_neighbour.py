"""Train every model of the left-neighbour task and write the record of chapter 7.

    python -m transformer.lab.toys.record_left_neighbour     about ten minutes on one CPU core

Ctrl-C stops it, and the same command continues.
"""

import torch

from transformer.lab.recording import Recording, parser
from transformer.lab.toys.left_neighbour import (
    FACTORS,
    FEWER_SEEDS,
    LONG,
    PLACES,
    RECORD,
    SEEDS,
    STEPS,
    WAYS,
    learn,
)


def main() -> None:
    """Record the runs that are missing."""
    chosen = parser(__doc__, RECORD).parse_args()
    torch.set_num_threads(1)
    recording = Recording(
        chosen.output,
        "transformer.lab.toys.record_left_neighbour",
        digits=4,
        steps=STEPS,
        places=PLACES,
        long=LONG,
    )
    runs = recording.content.setdefault("runs", [])
    done = {(run["positions"], run["trained"], run["factor"], run["seed"]) for run in runs}
    for factor in FACTORS:
        for seed in SEEDS if factor == FACTORS[0] else FEWER_SEEDS:
            for way in WAYS:
                fewer = way.positions == "none" and seed not in FEWER_SEEDS
                if fewer or (way.positions, way.trained, factor, seed) in done:
                    continue
                _, measured = learn(way, seed, factor)
                runs.append(
                    dict(
                        positions=way.positions,
                        trained=way.trained,
                        factor=factor,
                        seed=seed,
                        measured=measured,
                    )
                )
                recording.save(f"{way}, {factor}, seed {seed}: {measured[-1]}")


if __name__ == "__main__":
    main()
