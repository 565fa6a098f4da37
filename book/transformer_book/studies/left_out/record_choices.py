"""Train every choice that the paper leaves open, and later ones, beside base, with every seed.

Choices close to the border of the rule are trained with new seeds, too.

    python -m transformer_book.studies.left_out.record_choices                two hours on one core
    python -m transformer_book.studies.left_out.record_choices --minutes 20

The record belongs to chapter 22 and the annotated paper. It is written, kept and resumed as that
of :mod:`transformer_book.studies.choices.record`.
"""

import time

import torch

from transformer_book.studies.choices.record import record_rows
from transformer_book.studies.left_out.choices import (
    CHOICES,
    NEW_SEEDS,
    RECORD,
    RETESTED,
    SCALE,
    SEEDS,
    choice_preset,
)
from transformer_book.studies.recording import parser


def main() -> None:
    """Record the choices that are missing."""
    options = parser(__doc__, RECORD, minutes=True)
    chosen = options.parse_args()
    torch.set_num_threads(1)
    until = time.time() + 60 * chosen.minutes
    for choices, seeds in ((list(CHOICES), SEEDS), (["base", *RETESTED], NEW_SEEDS)):
        record_rows(
            SCALE,
            chosen.output,
            {name: choice_preset(name) for name in CHOICES},
            choices,
            seeds,
            "python -m transformer_book.studies.left_out.record_choices",
            data_dir=None,
            until=until,
        )


if __name__ == "__main__":
    main()
