"""Train every translator of the study and write the record of chapter 1.

    python -m transformer.lab.toys.record     about twenty minutes on one CPU core

Ctrl-C stops it, and the same command continues.
"""

import torch

from transformer.lab.recording import Recording, parser
from transformer.lab.toys.bottleneck import FACTORS, LENGTHS, READERS, RECORD, SEEDS, STEPS, learn


def main() -> None:
    """Record the runs that are missing."""
    chosen = parser(__doc__, RECORD).parse_args()
    torch.set_num_threads(1)
    recording = Recording(
        chosen.output,
        "transformer.lab.toys.record",
        digits=4,
        steps=STEPS,
        lengths=LENGTHS,
    )
    runs = recording.content.setdefault("runs", [])
    done = {(run["reader"], run["factor"], run["seed"]) for run in runs}
    for seed in SEEDS:
        for reader in READERS:
            for factor in FACTORS:
                if (reader.name, factor, seed) in done:
                    continue
                model, shares = learn(reader, seed, factor)
                runs.append(
                    dict(
                        reader=reader.name,
                        factor=factor,
                        seed=seed,
                        parameters=model.num_parameters(),
                        shares=shares,
                    )
                )
                recording.save(f"{reader.name}, {factor}, seed {seed}: {shares[-1]}")


if __name__ == "__main__":
    main()
