"""Train every model of the study and write the record of chapter 5.

    python -m transformer.lab.toys.lookup_record     about five minutes on one CPU core

Ctrl-C stops it, and the same command continues.
"""

from dataclasses import asdict

import torch

from transformer.lab.recording import Recording, parser
from transformer.lab.toys.lookup_study import (
    BATCH,
    D_MODEL,
    RECORD,
    SEEDS,
    SETTINGS,
    TASK,
    learn,
    weight_on_slots,
)
from transformer.lab.toys.lookups import lookup_accuracy


def main() -> None:
    """Record the runs that are missing."""
    chosen = parser(__doc__, RECORD).parse_args()
    torch.set_num_threads(1)
    recording = Recording(
        chosen.output,
        "transformer.lab.toys.lookup_record",
        digits=4,
        seeds=SEEDS,
        d_model=D_MODEL,
        batch=BATCH,
    )
    runs = recording.content.setdefault("runs", [])
    done = [{key: run[key] for key in asdict(SETTINGS[0])} for run in runs]
    for setting in SETTINGS:
        if asdict(setting) in done:
            continue
        models = learn(setting)
        right = [lookup_accuracy(model) for model in models]
        size = sum(p.numel() for p in models[0].parameters())
        run = asdict(setting) | dict(parameters=size, right=right)
        if setting.heads == TASK.slots:
            run["weight_on_slots"] = [weight_on_slots(model).tolist() for model in models]
        runs.append(run)
        recording.save(f"{setting}: {sum(right) / len(right):.3f}")


if __name__ == "__main__":
    main()
