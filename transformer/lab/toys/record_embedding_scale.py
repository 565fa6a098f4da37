"""Train the small models with every start of the embedding and write the record of chapter 10.

    python -m transformer.lab.toys.record_embedding_scale     about five minutes on one CPU core

Ctrl-C stops it, and the same command continues.
"""

import torch

from transformer.lab.recording import Recording, parser
from transformer.lab.toys.embedding_scale import BLOCK, RECORD, SEEDS, STARTS, STEPS, TASKS, learn


def main() -> None:
    """Record the runs that are missing."""
    chosen = parser(__doc__, RECORD).parse_args()
    torch.set_num_threads(1)
    recording = Recording(
        chosen.output,
        "transformer.lab.toys.record_embedding_scale",
        digits=4,
        steps=STEPS,
        block=BLOCK,
        seeds=SEEDS,
    )
    runs = recording.content.setdefault("runs", [])
    done = {(run["start"], run["task"]) for run in runs}
    for task in TASKS:
        for start in STARTS:
            if (start.name, task) in done:
                continue
            losses = learn(start, task)
            runs.append(dict(start=start.name, task=task, losses=losses.tolist()))
            recording.save(f"{start.name}, {task}: {losses[:, -4:].mean():.2f}")


if __name__ == "__main__":
    main()
