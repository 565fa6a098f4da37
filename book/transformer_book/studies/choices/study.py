"""Every row of the paper's Table 3, in the paper's ratios, at a size that trains in minutes."""

import sys
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import yaml

from transformer.data.batching import TokenBatches
from transformer.data.corpora import load_corpus
from transformer.inference.metrics import bleu, chrf
from transformer.inference.options import SearchOptions
from transformer.inference.translator import Translator
from transformer.model.config import TransformerConfig
from transformer.recipes.presets import Preset
from transformer.recipes.table_3 import table_3
from transformer.training.config import TrainingConfig
from transformer.training.curve import read_curve
from transformer.training.loss import perplexity
from transformer.training.trainer import Trainer
from transformer_book.studies.training import ShortText, make_model, short_text

#: Folder of the records, one per scale.
STUDIES = Path(__file__).parent


@dataclass(frozen=True)
class Printed:
    """Results that Table 3 prints for a row, on newstest2013."""

    perplexity: float  #: per token of the vocabulary
    bleu: float
    parameters: int | None = None  #: in millions; None where the cell is empty


#: The paper's results by row (letter and place), in the table's order.
ROWS: dict[str, Printed] = {
    "base": Printed(4.92, 25.8, 65),
    "A1": Printed(5.29, 24.9), "A2": Printed(5.00, 25.5),
    "A3": Printed(4.91, 25.8), "A4": Printed(5.01, 25.4),
    "B1": Printed(5.16, 25.1, 58), "B2": Printed(5.01, 25.4, 60),
    "C1": Printed(6.11, 23.7, 36), "C2": Printed(5.19, 25.3, 50), "C3": Printed(4.88, 25.5, 80),
    "C4": Printed(5.75, 24.5, 28), "C5": Printed(4.66, 26.0, 168), "C6": Printed(5.12, 25.4, 53),
    "C7": Printed(4.75, 26.2, 90),
    "D1": Printed(5.77, 24.6), "D2": Printed(4.95, 25.5),
    "D3": Printed(4.67, 25.3), "D4": Printed(5.47, 25.7),
    "E1": Printed(4.92, 25.7),
    "big": Printed(4.33, 26.4, 213),
}  # fmt: skip

# Changes to the training; those to the model are in transformer.model.config.
_TRAINING: dict[str, dict[str, float]] = {
    "D3": dict(label_smoothing=0.0),
    "D4": dict(label_smoothing=0.2),
}

# Fields of which a row's ratio to base is kept, not its value.
_SIZES = ("d_model", "d_ff", "d_k", "d_v", "num_layers", "num_heads")


@dataclass(frozen=True)
class Scale:
    """A size at which the table is rerun."""

    name: str  #: also of the record
    base: Preset  #: base model, training and text
    longest: int | None = None  #: words per sentence at most, split at spaces; None takes all
    split: str = "challenge"  #: to measure on, as the paper measures on a development set
    seeds: tuple[int, ...] = (1, 2)  #: of the recorded runs
    rows: tuple[str, ...] = tuple(ROWS)  #: that are recorded
    equal_steps: bool = False  #: train "big" as long as base, not three times as long

    @property
    def record(self) -> Path:
        """Path of the record."""
        return STUDIES / f"{self.name}.json"


def _scale(
    name: str, model: dict[str, Any], training: dict[str, Any], text: dict[str, Any], **options: Any
) -> Scale:
    base = Preset(name, TransformerConfig(**model), TrainingConfig(**training), **text)
    lists: dict[str, Any] = {
        key: tuple(options[key]) for key in ("seeds", "rows") if key in options
    }
    return Scale(name, base, **options | lists)


#: The scales by name.
SCALES: dict[str, Scale] = {
    name: _scale(name, **found)
    for name, found in yaml.safe_load((STUDIES / "scales.yml").read_text(encoding="utf-8")).items()
}


def row_preset(scale: Scale, row: str) -> Preset:
    """Change a scale's base model and training as a row of the paper changes the paper's."""
    if row not in ROWS:
        raise ValueError(f"Table 3 has no row {row!r}; rows are {', '.join(ROWS)}")
    place = (row,) if row in ("base", "big") else (row[0], int(row[1]))
    theirs, paper_base = table_3(*place), TransformerConfig.base()
    base = scale.base
    assert isinstance(base.model, TransformerConfig)
    changes: dict[str, Any] = dict(_TRAINING.get(row, {}))
    for name in (field.name for field in fields(theirs)):
        value, usual = getattr(theirs, name), getattr(paper_base, name)
        if name == "vocab_size" or value == usual:
            continue
        if name in _SIZES:
            value = _in_proportion(name, value, paper_base, base.model)
        changes[name] = value
    if row == "big" and not scale.equal_steps:
        changes["max_steps"] = 3 * base.training.max_steps
    return base.with_changes(**changes)


def _in_proportion(
    name: str, value: int, paper_base: TransformerConfig, base: TransformerConfig
) -> int:
    def size(config: TransformerConfig) -> int:
        given = getattr(config, name)
        return config.d_model // config.num_heads if given is None else given

    scaled, rest = divmod(value * size(base), size(paper_base))
    if rest or scaled < 1:
        raise ValueError(
            f"{name} {value} of the paper is {value / size(paper_base):g} times its base, which is "
            f"no whole number for a base of {size(base)}"
        )
    return scaled


def scale_text(scale: Scale, data_dir: Path | str | None = None) -> ShortText:
    """Read the text of a scale: the same pairs and the same vocabulary for every row."""
    corpus = load_corpus(scale.base.corpus, data_dir)
    longest = sys.maxsize if scale.longest is None else scale.longest
    return short_text(corpus, scale.base, longest, scale.split)


def run_row(
    preset: Preset, text: ShortText, folder: Path | str, progress: bool | None = None
) -> dict[str, Any] | None:
    """Train one row, or resume it, and measure the last weights; None if a signal stopped it."""
    model = make_model(preset)
    held_out = TokenBatches(text.held_out, 4096)
    trainer = Trainer(
        model, text.train, preset.training, folder, validation=held_out, progress=progress
    )
    if not trainer.fit():
        return None
    translator = Translator(model, text.tokenizer)
    search = SearchOptions(preset.beam_size, preset.alpha)
    texts = translator.translate(text.text.source, search, batch_size=256, sentence_case=False)
    scores = [score(texts, text.text.target) for score in (bleu, chrf)]
    curve = read_curve(Path(folder) / "curve.jsonl")
    return dict(
        perplexity=perplexity(model, held_out),
        parameters=model.num_parameters(),
        minutes=trainer.seconds / 60,
        curve=[(line["step"], line["perplexity"]) for line in curve if "perplexity" in line],
        signatures={score.name: score.signature for score in scores},
        translations=texts,
    ) | {score.name: score.score for score in scores}
