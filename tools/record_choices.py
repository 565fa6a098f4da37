"""Trains every choice that the paper leaves open, and the later ones, beside base, with every seed.

    python tools/record_choices.py                      all: an hour and a half on one core
    python tools/record_choices.py --minutes 20

Chapter 21 and the departures ledger draw from the record. Runs are written down, kept and gone on
with as by ``record_table_3.py``.
"""

import argparse
import time
from pathlib import Path

import torch
from record_table_3 import FOLDER, record_rows

from transformer.lab.recipe.choices import CHOICES, RECORD, SCALE, SEEDS, choice_preset


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--choices", nargs="+", choices=CHOICES, default=list(CHOICES))
    parser.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no run later")
    parser.add_argument("--output", type=Path, default=RECORD)
    parser.add_argument("--folder", type=Path, default=FOLDER.with_name("choices"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    whole = record_rows(
        SCALE,
        options.output,
        {name: choice_preset(name) for name in CHOICES},
        options.choices,
        options.seeds,
        "python tools/record_choices.py",
        folder=options.folder,
        until=time.time() + 60 * options.minutes,
    )
    if not whole:
        raise SystemExit("not all is recorded; the same command goes on from here")


if __name__ == "__main__":
    main()
