"""Train the models of a study that are missing from its record.

    python -m transformer.lab.toys.record bottleneck          chapter 1, twenty minutes on one core
    python -m transformer.lab.toys.record lookup_study        chapter 5, five minutes
    python -m transformer.lab.toys.record unmasked            chapter 6, six minutes
    python -m transformer.lab.toys.record left_neighbour      chapter 7, ten minutes
    python -m transformer.lab.toys.record facts               chapter 8, five minutes
    python -m transformer.lab.toys.record embedding_scale     chapter 10, five minutes
    python -m transformer.lab.toys.record planted             chapter 11, seven minutes

Ctrl-C stops it, and the same command continues.
"""

from importlib import import_module

import torch

from transformer.lab.recording import Recording, parser

#: Modules of the studies, with the number of decimals that each record keeps.
STUDIES = {
    "bottleneck": 4,
    "lookup_study": 4,
    "unmasked": 4,
    "left_neighbour": 4,
    "facts": 4,
    "embedding_scale": 4,
    "planted": None,
}


def main() -> None:
    """Record the runs of one study that are missing."""
    options = parser(__doc__, None)
    options.add_argument("study", choices=STUDIES)
    chosen = options.parse_args()
    study = import_module(f"transformer.lab.toys.{chosen.study}")
    torch.set_num_threads(1)
    recording = Recording(
        chosen.output or study.RECORD,
        "transformer.lab.toys.record",
        [chosen.study],
        digits=STUDIES[chosen.study],
        **study.HEADING,
    )
    runs = recording.content.setdefault("runs", [])
    for run, line in study.missing(runs):
        runs.append(run)
        recording.save(line)


if __name__ == "__main__":
    main()
