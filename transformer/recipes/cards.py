"""Presets on the GPUs that people have: the batch and the precision that fit."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from transformer.fast.device import missing_for_compiling
from transformer.model.config import TransformerConfig
from transformer.recipes.architectures import count_parameters
from transformer.recipes.estimate import size, training_bytes
from transformer.recipes.presets import Preset
from transformer.training.config import Precision
from transformer.training.run_folder import settings_of

#: Share of a card's memory that a run may plan with; the rest is fragments and CUDA's own.
USABLE = 0.85
#: Fields that are chosen by the card, and that a run keeps when it goes on with another card.
OF_CARD = ("batch_tokens", "accumulate", "precision", "checkpoint_activations")
#: Most batches per step before activations are recomputed; smaller batches keep a GPU idle.
MOST_BATCHES = 8


@dataclass(frozen=True)
class Card:
    """A GPU: its memory in bytes, its half precision, and whether its machine can compile."""

    title: str
    memory: int
    precision: Precision = "bf16"
    compiler: bool = True


CARDS = {
    "t4": Card("T4", 15_800_000_000, "fp16"),
    "24gb": Card("24 GB card (RTX 3090)", 25_300_000_000),
    "a100": Card("A100 (40 GB)", 42_300_000_000),
    "h100": Card("H100 (80 GB)", 85_000_000_000),
    "h200": Card("H200 (141 GB)", 150_000_000_000),
}


def get_card(name: str) -> Card:
    """Return a card by name; raise ValueError if there is none."""
    if name not in CARDS:
        raise ValueError(f"card must be one of {', '.join(CARDS)}, got {name!r}")
    return CARDS[name]


def this_card() -> Card | None:
    """Return the GPU of this machine, or None without one."""
    if not torch.cuda.is_available():
        return None
    found = torch.cuda.get_device_properties(0)
    precision: Precision = "bf16" if found.major >= 8 else "fp16"
    compiler = missing_for_compiling("cuda") is None
    return Card(found.name, found.total_memory, precision, compiler)


def on_card(preset: Preset, card: Card, fixed: Collection[str] = ()) -> Preset:
    """Fit a preset in half precision to a card; others are small, and stay as they are.

    The tokens per step stay those of the preset. They come in as few batches as the memory allows,
    and activations are recomputed only where even small batches do not fit.

    Args:
        preset: the recipe.
        card: where it will train.
        fixed: fields that keep their values.
    """
    training = preset.training
    if training.precision == "fp32" or not isinstance(preset.model, TransformerConfig):
        return preset
    if "precision" not in fixed:
        training = replace(training, precision=card.precision)
    tokens, parameters = training.batch_tokens * training.accumulate, count_parameters(preset.model)
    most = max(1, tokens // (training.max_length or 1))  # a batch holds the longest sentence
    counts = [n for n in range(1, most + 1) if tokens % n == 0]
    if "batch_tokens" in fixed or "accumulate" in fixed:
        counts = [training.accumulate]
    plain = training.checkpoint_activations
    ways = [(n, plain) for n in counts if n <= max(MOST_BATCHES, counts[0])]
    if "checkpoint_activations" not in fixed:
        ways += [(n, True) for n in counts]
    for count, recompute in ways:
        choice = replace(
            training,
            batch_tokens=tokens // count,
            accumulate=count,
            checkpoint_activations=recompute,
        )
        needed = training_bytes(preset.model, choice, parameters)
        if needed is not None and needed <= USABLE * card.memory:
            break
    return replace(preset, training=choice)


def on_card_in(
    preset: Preset, card: Card, folder: Path | str, fixed: Collection[str] = ()
) -> Preset:
    """Fit a preset to a card as :func:`on_card` does; a run that has begun keeps what it has."""
    begun = settings_of(Path(folder)) if preset.training.precision != "fp32" else {}
    kept = {field: begun[field] for field in OF_CARD if field in begun and field not in fixed}
    return on_card(preset.with_changes(**kept), card, {*fixed, *kept})


def on_this_card(preset: Preset, folder: Path | str | None = None) -> Preset:
    """Fit a preset to the GPU of this machine, if there is one."""
    card = this_card()
    if card is None:
        return preset
    return on_card(preset, card) if folder is None else on_card_in(preset, card, folder)


def describe_card(preset: Preset, card: Card) -> list[str]:
    """Describe in a few lines how a preset trains on a card, and warn if it does not fit.

    The memory is an estimate. How long a step takes is measured when a run starts, on the card.
    """
    training = preset.training
    shown = [f"{training.batch_tokens:,} tokens x {training.accumulate}", training.precision]
    shown += ["compiled"] * (training.compile and card.compiler)
    shown += ["activations recomputed"] * training.checkpoint_activations
    lines = [f"card: {card.title}, {size(card.memory)}; {', '.join(shown)}"]
    needed = training_bytes(preset.model, training, count_parameters(preset.model))
    if needed is None:
        return lines
    lines.append(f"on this card: about {size(needed)} of its memory; estimated")
    usable = USABLE * card.memory
    if needed > usable:
        lines.append(
            f"warning: this does not fit: it needs about {size(needed)}, and a run can plan with "
            f"{size(usable)} of the {size(card.memory)}"
        )
    return lines
