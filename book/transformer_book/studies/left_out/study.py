"""Choices that the paper leaves open or that came later, each measured like a row of Table 3."""

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from transformer.model.config import TransformerConfig
from transformer.recipes.presets import Preset
from transformer.recipes.record import read_record
from transformer_book.statistics import paired_interval
from transformer_book.studies.choices.record import record_rows
from transformer_book.studies.choices.study import SCALES, Scale

Group = Literal["open", "later"]


@dataclass(frozen=True)
class Choice:
    """One change of the base recipe."""

    text: str
    #: "open" if the paper does not specify it or its published code differs; "later" if it came
    #: after the paper.
    group: Group
    #: fields of the model or of the training and their values, or a function of the base preset
    #: that returns them.
    changes: dict[str, Any] | Callable[[Preset], dict[str, Any]]

    def preset(self, base: Preset) -> Preset:
        """Apply the choice to a base preset."""
        changes = self.changes if isinstance(self.changes, dict) else self.changes(base)
        return base.with_changes(**changes)


def _schedule(rate: int | float, warmup: int | float) -> Callable[[Preset], dict[str, Any]]:
    def changes(base: Preset) -> dict[str, Any]:
        training = base.training
        return dict(
            learning_rate_factor=rate * training.learning_rate_factor,
            warmup_steps=round(warmup * training.warmup_steps),
        )

    return changes


def _sizes(base: Preset) -> TransformerConfig:
    assert isinstance(base.model, TransformerConfig)
    return base.model


def _gated(base: Preset) -> dict[str, Any]:
    """Use two thirds of the hidden units: three matrices then have the parameters of two."""
    return dict(activation="swiglu", d_ff=round(_sizes(base).d_ff * 2 / 3))


def _grouped(base: Preset) -> dict[str, Any]:
    return dict(num_kv_heads=max(_sizes(base).num_heads // 4, 1))


def _together(base: Preset) -> dict[str, Any]:
    usual = dict(norm="pre", norm_kind="rms", positions="rotary")
    return usual | _gated(base) | _grouped(base)


#: Choices by name; "base" is the paper's text as the package reads it.
CHOICES: dict[str, Choice] = {
    "base": Choice("the package's defaults", "open", {}),
    "pre-norm": Choice("norm before each sub-layer (pre-norm)", "open", dict(norm="pre")),
    "final-norm": Choice("post-norm, with a final norm per stack", "open", dict(final_norm=True)),
    "eps-1e-5": Choice(
        "layer norm with PyTorch's epsilon, 1e-5", "open", dict(layer_norm_eps=1e-5)
    ),
    "separate-init": Choice(
        "queries, keys and values drawn one by one", "open", dict(init="separate")
    ),
    "glorot-init": Choice("Glorot for the embeddings, too", "open", dict(init="glorot")),
    "no-bias": Choice("no biases in attention", "open", dict(attention_bias=False)),
    "halves": Choice(
        "the published code's sinusoids (halves, other exponent)",
        "open",
        dict(positions="sinusoidal-t2t"),
    ),
    "zeros-first": Choice(
        "zeros as the decoder's first input", "open", dict(first_input="zeros")
    ),
    "more-dropout": Choice(
        "dropout on attention weights and hidden units, too",
        "open",
        dict(attention_dropout=0.1, activation_dropout=0.1),
    ),
    "separate-matrices": Choice(
        "three matrices for embeddings and output", "open", dict(sharing="none")
    ),
    "others": Choice("smoothing over the other tokens only", "open", dict(smoothing="others")),
    "not-padding": Choice(
        "smoothing over all but truth and padding", "open", dict(smoothing="others-but-padding")
    ),
    "half-rate": Choice("half the learning rate", "open", _schedule(0.5, 1)),
    "double-rate": Choice("twice the learning rate", "open", _schedule(2, 1)),
    "later-schedule": Choice(
        "learning rate and warm-up doubled, as in the later code", "open", _schedule(2, 2)
    ),
    "clipped": Choice("gradients clipped at norm 1", "open", dict(clip_norm=1.0)),
    "rms-norm": Choice("RMS norm", "later", dict(norm_kind="rms")),
    "gelu": Choice("GELU in place of ReLU", "later", dict(activation="gelu")),
    "gated": Choice("a gate in the feed-forward network (SwiGLU)", "later", _gated),
    "rotary": Choice("rotary positions", "later", dict(positions="rotary")),
    "grouped": Choice("two groups of four query heads share keys and values", "later", _grouped),
    "one-key-head": Choice(
        "all eight query heads share keys and values", "later", dict(num_kv_heads=1)
    ),
    "together": Choice("pre-norm, RMS, rotary, gate and two groups", "later", _together),
}  # fmt: skip

# The scale of the recorded runs: a small version of Table 3.
SCALE: Scale = SCALES["table-3-small"]

#: The seeds of the recorded runs.
SEEDS: tuple[int, ...] = (1, 2, 3)

#: Choices close to the border of the rule, and the seeds of their second test. Its rule was written
#: before its runs: the verdict is that of the new seeds alone.
RETESTED = ("pre-norm", "later-schedule", "separate-matrices", "clipped", "together")
NEW_SEEDS: tuple[int, ...] = (4, 5, 6, 7, 8)

RECORD = Path(__file__).parent / "record.json"


def choice_preset(name: str, base: Preset = SCALE.base) -> Preset:
    """Return the preset of a choice, one of :data:`CHOICES`, on top of a base preset."""
    return CHOICES[name].preset(base)


@dataclass(frozen=True)
class Effect:
    """The effect of one choice, compared with base at the same seeds."""

    name: str
    #: gain in the logarithm of the perplexity, by seed; above 0 is better than base.
    nats: tuple[float, ...]
    bleu: tuple[float, ...]  #: gain in BLEU, by seed.
    parameters: int

    @property
    def mean(self) -> float:
        """Mean gain in nats."""
        return sum(self.nats) / len(self.nats)

    @property
    def verdict(self) -> Literal["better", "worse", "no clear difference"]:
        """Whether the paired 95% interval of the gain in nats excludes zero."""
        low, high = paired_interval(self.nats)
        return "better" if low > 0 else "worse" if high < 0 else "no clear difference"


def effects(runs: Iterable[Mapping[str, Any]]) -> dict[str, Effect]:
    """Compare each recorded choice with base, seed by seed."""
    found: dict[str, dict[int, Mapping[str, Any]]] = {}
    for run in runs:
        found.setdefault(run["row"], {})[run["seed"]] = run
    base = found.pop("base", {})
    nats = {seed: math.log(run["perplexity"]) for seed, run in base.items()}
    result = {}
    for name in (name for name in CHOICES if name in found):
        seeds = [seed for seed in sorted(found[name]) if seed in base]
        mine = {seed: found[name][seed] for seed in seeds}
        result[name] = Effect(
            name,
            tuple(nats[seed] - math.log(run["perplexity"]) for seed, run in mine.items()),
            tuple(run["BLEU"] - base[seed]["BLEU"] for seed, run in mine.items()),
            mine[seeds[0]]["parameters"],
        )
    return result


def recorded_effects(seeds: Collection[int] = SEEDS) -> dict[str, Effect]:
    """Read the effects with some of the seeds from the record that ships with the package."""
    return effects(run for run in read_record(RECORD)["runs"] if run["seed"] in seeds)


def final_effects() -> dict[str, Effect]:
    """Read each choice's effect in its second test if it had one, else in the first."""
    return recorded_effects() | recorded_effects(NEW_SEEDS)


def record(path: Path, until: float, command: str) -> None:
    """Train the choices that a record lacks, and those close to the border with new seeds, too."""
    presets = {name: choice_preset(name) for name in CHOICES}
    for choices, seeds in ((list(CHOICES), SEEDS), (["base", *RETESTED], NEW_SEEDS)):
        record_rows(SCALE, path, presets, choices, seeds, command, None, until)
