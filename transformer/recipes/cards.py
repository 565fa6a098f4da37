"""Presets on the GPUs that people have: batch and precision that fit, and what a run takes there.

Paper: section 5.2 (hardware and schedule)
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from transformer.fast.device import missing_for_compiling
from transformer.model.config import TransformerConfig
from transformer.recipes.architectures import count_parameters
from transformer.recipes.estimate import (
    activation_bytes,
    size,
    training_bytes,
    training_flops,
)
from transformer.recipes.presets import Preset
from transformer.training.config import Precision
from transformer.training.curve import duration
from transformer.training.run_folder import settings_of

#: Share of a card's memory that a run may plan with; the rest is fragments and CUDA's own.
USABLE = 0.85
#: Share of the rates in the data sheet that large products and long copies sustain.
SUSTAINED = 0.55, 0.8
#: How often a byte that is kept for the backward pass is moved, in all kernels of a step that are
#: not products: without and with a compiled model.
MOVED = 7.9, 4.8
#: The same for a byte of the logits: without and with a compiled loss.
MOVED_LOGITS = 22, 5
#: Share of the traffic of the layers that ``half_residual`` leaves.
HALF_RESIDUAL = 0.82
#: Bytes moved per parameter by gradients, Adam and the copy in half precision.
MOVED_PER_PARAMETER = 32
#: How many times as long a step takes as its products and copies alone, mostly because of attention
#: in short sentences and of idle time between kernels. Measured with wmt14-base on an H200.
OVERHEAD = 1.52
#: Seconds in which the host prepares and launches the kernels of a batch.
HOST = 0.02
#: Mean length of a sentence of WMT's text, in tokens.
SENTENCE = 28
#: Fields that are chosen by the card, and that a run keeps when it goes on with another card.
OF_CARD = ("batch_tokens", "accumulate", "precision", "checkpoint_activations")
#: Most batches per step before activations are recomputed; smaller batches keep a GPU idle.
MOST_BATCHES = 8


@dataclass(frozen=True)
class Card:
    """A GPU: its memory, its rates by the data sheet, and the price that an estimate assumes."""

    title: str
    memory: int  #: bytes
    flops: float  #: operations per second of matrix products in half precision, without sparsity
    bandwidth: float  #: bytes per second
    dollars: float  #: per hour, rented; prices differ by a factor of two
    precision: Precision = "bf16"
    compiler: bool = True  #: whether PyTorch can compile on its machine


CARDS = {
    "t4": Card("T4", 15_800_000_000, 65e12, 320e9, 0.35, "fp16"),
    "24gb": Card("24 GB card (RTX 3090)", 25_300_000_000, 71e12, 936e9, 0.35),
    "a100": Card("A100 (40 GB)", 42_300_000_000, 312e12, 1555e9, 1.5),
    "h100": Card("H100 (80 GB)", 85_000_000_000, 989e12, 3350e9, 2.75),
    "h200": Card("H200 (141 GB)", 150_000_000_000, 989e12, 4800e9, 3.5),
}


def get_card(name: str) -> Card:
    """Return a card by name; raise ValueError if there is none."""
    if name not in CARDS:
        raise ValueError(f"card must be one of {', '.join(CARDS)}, got {name!r}")
    return CARDS[name]


def this_card() -> Card | None:
    """Return the GPU of this machine, with the rates of the known card most like it, if any."""
    if not torch.cuda.is_available():
        return None
    found = torch.cuda.get_device_properties(0)
    named = (card for name, card in CARDS.items() if re.search(rf"\b{name}\b", found.name, re.I))
    smaller = [card for card in CARDS.values() if card.memory <= 1.1 * found.total_memory]
    known = next(named, None) or (smaller or [CARDS["t4"]])[-1]
    return replace(
        known,
        title=found.name,
        memory=found.total_memory,
        precision="bf16" if found.major >= 8 else "fp16",
        compiler=missing_for_compiling("cuda") is None,
    )


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
    """Fit a preset to a card as :func:`on_card` does; a run that has begun keeps what it has.

    Args:
        preset: the recipe.
        card: where it will train.
        folder: of the run; it need not exist.
        fixed: fields that keep their values.
    """
    begun = settings_of(Path(folder)) if preset.training.precision != "fp32" else {}
    kept = {field: begun[field] for field in OF_CARD if field in begun and field not in fixed}
    return on_card(preset.with_changes(**kept), card, {*fixed, *kept})


def on_this_card(preset: Preset, folder: Path | str | None = None) -> Preset:
    """Fit a preset to the GPU of this machine, if there is one.

    Args:
        preset: the recipe.
        folder: of the run, see :func:`on_card_in`; None if there is none.
    """
    card = this_card()
    if card is None:
        return preset
    return on_card(preset, card) if folder is None else on_card_in(preset, card, folder)


def describe_card(preset: Preset, card: Card) -> list[str]:
    """Describe in a few lines how a preset trains on a card, and estimate memory, hours and cost.

    The time is that of the training steps alone: the operations of the matrix products and the
    bytes that the other kernels move, times :data:`OVERHEAD`. In float32 only the memory is
    estimated, because the rates of the cards are those of half precision. The last line warns of a
    preset that does not fit.
    """
    training = preset.training
    shown = [f"{training.batch_tokens:,} tokens x {training.accumulate}", training.precision]
    shown += ["compiled"] * (training.compile and card.compiler)
    shown += ["activations recomputed"] * training.checkpoint_activations
    lines = [f"card: {card.title}, {size(card.memory)}; {', '.join(shown)}"]
    needed = training_bytes(preset.model, training, count_parameters(preset.model))
    if needed is not None and training.precision == "fp32":
        lines.append(f"on this card: about {size(needed)} of its memory; estimated")
    elif needed is not None:
        seconds = training.max_steps * step_seconds(preset, card)
        dollars = seconds / 3600 * card.dollars
        lines.append(
            f"on this card: about {size(needed)} of its memory, {duration(seconds)} of training, "
            f"${dollars:,.2f} at an assumed ${card.dollars:.2f} per hour; estimated"
        )
    usable = USABLE * card.memory
    if needed is not None and needed > usable:
        lines.append(
            f"warning: this does not fit: it needs about {size(needed)}, and a run can plan with "
            f"{size(usable)} of the {size(card.memory)}"
        )
    return lines


def step_seconds(preset: Preset, card: Card) -> float:
    """Estimate the seconds of a training step of a Transformer in half precision on a card.

    Raises:
        TypeError: if the model is not a Transformer.
        ValueError: if the preset trains in float32, for which a card has no rate here.
    """
    model, training = preset.model, preset.training
    if not isinstance(model, TransformerConfig):
        raise TypeError(f"model must be a Transformer's, got a {type(model).__name__}")
    if training.precision == "fp32":
        raise ValueError("precision must be bf16 or fp16 for an estimate of time, got 'fp32'")
    tokens = training.batch_tokens * training.accumulate
    again = 4 / 3 if training.checkpoint_activations else 1
    flops = again * training_flops(model, SENTENCE, SENTENCE) * tokens / SENTENCE
    kept = replace(training, batch_tokens=tokens, checkpoint_activations=False)
    moved = again * MOVED[training.compile and card.compiler] * activation_bytes(model, kept)
    moved *= HALF_RESIDUAL if training.half_residual else 1
    moved += MOVED_LOGITS[card.compiler] * 2 * tokens * model.vocab_size
    moved += MOVED_PER_PARAMETER * count_parameters(preset.model)
    products, copies = SUSTAINED
    on_paper = flops / (products * card.flops) + moved / (copies * card.bandwidth)
    return max(OVERHEAD * on_paper, HOST * training.accumulate)
