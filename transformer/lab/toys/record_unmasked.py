"""Train models with and without the causal mask and write the record of chapter 6.

    python -m transformer.lab.toys.record_unmasked     about six minutes on one CPU core

Ctrl-C stops it, and the same command continues.
"""

import torch

from transformer.lab.recording import Recording, parser
from transformer.lab.toys.unmasked import MASKS, RECORD, SEEDS, STEPS, learn


def main() -> None:
    """Record the runs that are missing."""
    chosen = parser(__doc__, RECORD).parse_args()
    torch.set_num_threads(1)
    recording = Recording(
        chosen.output, "transformer.lab.toys.record_unmasked", digits=4, steps=STEPS
    )
    runs = recording.content.setdefault("runs", [])
    done = {(run["seed"], run["mask"]) for run in runs}
    for seed in SEEDS:
        for mask in MASKS:
            if (seed, mask) in done:
                continue
            _, found = learn(mask, seed)
            runs.append(dict(seed=seed, mask=mask, found=found))
            recording.save(f"seed {seed}, {mask}: {found[-1]}")


if __name__ == "__main__":
    main()
