"""Train every choice that the paper leaves open, and later ones, beside base, with every seed.

    python -m transformer.lab.recipe.record_choices                an hour and a half on one core
    python -m transformer.lab.recipe.record_choices --minutes 20

The record belongs to chapter 22 and the annotated paper. It is written, kept and resumed as that
of :mod:`transformer.lab.table_3.record`.
"""

import time

import torch

from transformer.lab.recipe.choices import CHOICES, RECORD, SCALE, SEEDS, choice_preset
from transformer.lab.recording import parser
from transformer.lab.table_3.record import record_rows


def main() -> None:
    """Record the choices that are missing."""
    options = parser(__doc__, RECORD, minutes=True)
    options.add_argument("--choices", nargs="+", choices=CHOICES, default=list(CHOICES))
    options.add_argument("--seeds", nargs="+", type=int, default=list(SEEDS))
    chosen = options.parse_args()
    torch.set_num_threads(1)
    record_rows(
        SCALE,
        chosen.output,
        {name: choice_preset(name) for name in CHOICES},
        chosen.choices,
        chosen.seeds,
        "python -m transformer.lab.recipe.record_choices",
        data_dir=None,
        until=time.time() + 60 * chosen.minutes,
    )


if __name__ == "__main__":
    main()
