"""Train the models of a study that are missing from its record.

    python -m transformer.lab.toys.record bottleneck          chapter 1, forty minutes on one core
    python -m transformer.lab.toys.record lookup_study        chapter 5, fifteen minutes
    python -m transformer.lab.toys.record unmasked            chapter 6, six minutes
    python -m transformer.lab.toys.record left_neighbour      chapter 7, fifteen minutes
    python -m transformer.lab.toys.record facts               chapter 8, fifteen minutes
    python -m transformer.lab.toys.record embedding_scale     chapter 10, fifteen minutes
    python -m transformer.lab.toys.record planted             chapter 11, seven minutes

Ctrl-C stops it, and the same command continues.
"""

from transformer.lab.recording import record_study

#: Modules of the studies, with the number of decimals that each record keeps.
STUDIES = {
    "bottleneck": 4,
    "lookup_study": 5,
    "unmasked": 4,
    "left_neighbour": 4,
    "facts": 4,
    "embedding_scale": 4,
    "planted": None,
}


if __name__ == "__main__":
    record_study(__doc__, "transformer.lab.toys", STUDIES)
