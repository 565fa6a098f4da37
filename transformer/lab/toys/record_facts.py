"""Train the networks of every shape on the facts and write the record of chapter 8.

    python -m transformer.lab.toys.record_facts     about five minutes on one CPU core

Ctrl-C stops it, and the same command continues.
"""

import torch

from transformer.lab.recording import Recording, parser
from transformer.lab.toys.facts import (
    BARE,
    DEEPER,
    FEED_FORWARD,
    LOWER,
    RATE,
    RECORD,
    SEEDS,
    STEPS,
    WIDER,
    Shape,
    Task,
    learn,
    parameters,
)


def main() -> None:
    """Record the runs that are missing."""
    chosen = parser(__doc__, RECORD).parse_args()
    torch.set_num_threads(1)
    recording = Recording(
        chosen.output,
        "transformer.lab.toys.record_facts",
        digits=4,
        steps=STEPS,
        seeds=SEEDS,
    )
    runs = recording.content.setdefault("runs", [])
    done = {(run["shape"], run["task"], run["rate"]) for run in runs}
    wanted: list[tuple[Shape, Task, float]] = [
        (shape, "know", RATE) for shape in (BARE, *FEED_FORWARD, *WIDER, *DEEPER)
    ]
    wanted.append((BARE, "move", RATE))
    wanted += [(ways[-1], "know", LOWER) for ways in (FEED_FORWARD, WIDER)]
    for shape, task, rate in wanted:
        if (shape.name, task, rate) in done:
            continue
        shares = learn(shape, task, rate)
        runs.append(
            dict(
                shape=shape.name,
                task=task,
                rate=rate,
                parameters=parameters(shape),
                shares=shares,
            )
        )
        means = [sum(share) / len(SEEDS) for share in zip(*shares, strict=True)]
        recording.save(f"{shape.name}, {task}, {rate}: {means}")


if __name__ == "__main__":
    main()
