"""Train every model of the study of scores and write the record of chapters 3 and 4.

    python -m transformer_book.studies.additive.record     a few minutes on one CPU core

Ctrl-C stops it, and the same command continues.
"""

from itertools import product

import torch

from transformer_book.studies.additive.recall import (
    CONTROL_SIZE,
    CONTROLS,
    RATES,
    RECORD,
    SCORES,
    SIZES,
    STEPS,
    learn,
)
from transformer_book.studies.recording import Recording, parser


def main() -> None:
    """Record the runs that are missing."""
    chosen = parser(__doc__, RECORD).parse_args()
    torch.set_num_threads(1)
    recording = Recording(
        chosen.output, "transformer_book.studies.additive.record", digits=4, steps=STEPS
    )
    runs = recording.content.setdefault("runs", [])
    done = {(run["kind"], run["d_k"], run["rate"]) for run in runs}
    settings = [*product(SCORES, SIZES), *product(CONTROLS, (CONTROL_SIZE,))]
    for (kind, d_k), rate in product(settings, RATES):
        if (kind.name, d_k, rate) in done:
            continue
        _, found = learn(kind, d_k, rate)
        measured = {name: [each[name] for each in found] for name in found[0]}
        runs.append(dict(kind=kind.name, d_k=d_k, rate=rate) | measured)
        recording.save(f"{kind.name}, {d_k}, {rate}: {sum(found[-1]['answers']) / 10:.2f}")


if __name__ == "__main__":
    main()
