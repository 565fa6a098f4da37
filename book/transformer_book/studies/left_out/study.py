"""Choices that the paper leaves open or that came later, each measured like a row of Table 3."""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml

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
    changes: dict[str, Any]  #: fields of the model or of the training, and their values


#: Choices by name; "base" is the paper's text as the package reads it.
CHOICES: dict[str, Choice] = {
    name: Choice(text, group, changes)
    for group, choices in yaml.safe_load(
        Path(__file__).with_name("choices.yml").read_text(encoding="utf-8")
    ).items()
    for name, (text, changes) in choices.items()
}

# The scale of the recorded runs: a small version of Table 3.
SCALE: Scale = SCALES["table-3-small"]

#: The seeds of the recorded runs.
SEEDS: tuple[int, ...] = (1, 2, 3)

#: Choices close to the border of the rule, and the seeds of their second test. Its rule was written
#: before its runs: the verdict is that of the new seeds alone.
RETESTED = ("pre-norm", "later-schedule", "separate-matrices", "clipped", "together")
NEW_SEEDS: tuple[int, ...] = (4, 5, 6, 7, 8)

RECORD = Path(__file__).parent / "record.json"


def choice_preset(name: str) -> Preset:
    """Return the preset of a choice, one of :data:`CHOICES`."""
    return SCALE.base.with_changes(**CHOICES[name].changes)


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
