"""Count a training step of the paper's models on a GPU: kernels, operations, bytes, memory.

    python -m transformer_book.speed.record_roofline     minutes; needs CUDA

The batch is that for an H100, on any device that holds it. The counts depend on shapes alone, so a
stand-in for CUDA that runs no kernel will do; the record says whether kernels ran. What the file
holds is kept: compiling takes minutes.
"""

import os
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from typing import Any
from unittest.mock import patch

import torch

from transformer.recipes.cards import CARDS, on_card
from transformer.recipes.estimate import random_batches
from transformer.recipes.presets import get_preset
from transformer_book.speed.roofline import RECORD, count_steps
from transformer_book.speed.throughput import PAIRS
from transformer_book.studies.recording import Recording, parser

#: Fields of the recipe and surroundings that differ, by the name of the variant.
VARIANTS: dict[str, tuple[dict[str, Any], AbstractContextManager[Any]]] = {
    "eager": (dict(compile=False), patch.dict(os.environ, CC="none")),  # there is no compiler
    "compile=false": (dict(compile=False), nullcontext()),
    "compiled": ({}, nullcontext()),
    "compiled, half_residual": (dict(half_residual=True), nullcontext()),
}
CARD = "h100"


def main() -> None:
    """Make the record."""
    options = parser(__doc__, RECORD)
    options.add_argument("presets", nargs="*", default=["wmt14-base", "wmt14-big"])
    options.add_argument("--steps", type=int, default=40)
    options.add_argument("--pairs", type=int, default=PAIRS)
    chosen = options.parse_args()
    if not torch.cuda.is_available():
        options.error("CUDA must be available")
    recording = Recording(
        chosen.output,
        "transformer_book.speed.record_roofline",
        kernels_ran=torch.ones((), device="cuda").item() == 1,
        text="random tokens, 28 per sentence",
        steps=chosen.steps,
        card=CARD,
    )
    for name in chosen.presets:
        preset = on_card(get_preset(name), CARDS[CARD])
        batches = random_batches(preset, count=chosen.pairs)
        counts = recording.content.setdefault("presets", {}).setdefault(name, {})
        for variant, (changes, surroundings) in VARIANTS.items():
            if variant in counts:
                continue
            torch.compiler.reset()
            with surroundings:
                count = count_steps(preset.with_changes(**changes), batches, chosen.steps)
            counts[variant] = asdict(count)
            recording.save(f"{name}, {variant}: {count}")


if __name__ == "__main__":
    main()
