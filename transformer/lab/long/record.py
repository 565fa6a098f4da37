"""Make the runs of a study that are missing from its record.

    python -m transformer.lab.long.record half_precision      chapter 23, two minutes on one core
    python -m transformer.lab.long.record long_steps          chapter 23, one minute
    python -m transformer.lab.long.record hops                chapter 24, twenty minutes
    python -m transformer.lab.long.record segments            chapter 24, one minute
    python -m transformer.lab.long.record truncation          chapter 24, two minutes

Ctrl-C stops it, and the same command continues.
"""

from transformer.lab.recording import record_study

#: Modules of the studies, with the number of decimals that each record keeps.
STUDIES = {"half_precision": 5, "long_steps": 5, "hops": 4, "segments": 4, "truncation": 4}


if __name__ == "__main__":
    record_study(__doc__, "transformer.lab.long", STUDIES)
