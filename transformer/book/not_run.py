"""Presets that nobody has run yet, and what each would need.

Paper: section 5.2, Table 2
"""

from collections.abc import Iterable, Mapping

import torch

from transformer.book.tables import Table, significant
from transformer.data.corpora.catalogue import corpus_catalogue
from transformer.lab.table_2.summary import Group
from transformer.model.config import TransformerConfig
from transformer.recipes.architectures import architecture, build_model
from transformer.recipes.cost import hardware_flops, training_flops
from transformer.recipes.presets import Preset

#: Fewer seeds than this show too little of the spread.
ENOUGH_SEEDS = 3


def needs(preset: Preset) -> tuple[str, ...]:
    """Say what a run of a preset takes, as far as it follows from the preset alone.

    Args:
        preset: the recipe.

    Returns:
        Number of parameters; memory for weights, gradients and Adam's two moments in float32;
        optimiser steps and most tokens of each; operations of the matrix products for full
        batches of sentences of 25 tokens; hours that one of the paper's P100s takes for them at
        9.5 TFLOPS. The last two are counted for Transformers only.

    Paper: section 6.1, footnote 5
    """
    training = preset.training
    with torch.device("meta"):  # shapes without memory
        count = sum(weights.numel() for weights in build_model(preset.model).parameters())
    tokens = training.batch_tokens * training.accumulate
    size = f"{count:,}", f"{16 * count / 1e9:.2f} GB", f"{training.max_steps:,} × {tokens:,}"
    if not isinstance(preset.model, TransformerConfig):
        return *size, "not counted", ""
    work = training_flops(preset.model, 25, 25) * training.max_steps * tokens / 25
    return *size, f"{work:.1e}", significant(work / hardware_flops(1, devices=1))


def render_not_run(groups: Iterable[Group], presets: Mapping[str, Preset]) -> str:
    """Write the section on presets without a record, or with few seeds.

    Args:
        groups: the recorded runs.
        presets: recipes by name. The one called "smoke" is left out: every test runs it.
    """
    seeds: dict[str, int] = {}
    for group in groups:
        seeds[group.name] = max(seeds.get(group.name, 0), len(group.runs))
    origins = {entry.name: entry.origin for entry in corpus_catalogue()}
    rows = [
        (
            f"`{name}`",
            f"{preset.corpus} ({origins.get(preset.corpus, 'own files')})",
            architecture(preset.model),
            *needs(preset),
        )
        for name, preset in presets.items()
        if name not in seeds and name != "smoke"
    ]
    parts = ["## Not run yet\n"]
    if rows:
        head = ["preset", "corpus (from)", "architecture", "parameters", "weights and Adam"]
        head += ["steps × tokens", "operations", "hours of a P100"]
        parts += [
            "Presets that have no record, and what they would need. Weights, gradients and Adam's "
            "two moments are counted in float32; what a batch needs comes on top. Operations are "
            "those of the matrix products, forward and backward, for full batches of sentences of "
            "25 tokens. The hours are what one of the paper's P100s would need for them at the "
            "9.5 TFLOPS of footnote 5. `transformer train PRESET` runs one, `make gpu` runs and "
            "records.\n",
            Table(head, rows).markdown(),
        ]
    else:
        parts.append("Every preset has a record.\n")
    few = [f"`{name}` ({count})" for name, count in seeds.items() if count < ENOUGH_SEEDS]
    if few:
        parts.append(f"Recorded with fewer than three seeds: {', '.join(few)}.\n")
    return "\n".join(parts)
