"""A small Table 3 (D): a model without dropout, one without smoothing, and averaged weights."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from transformer import minimal
from transformer.data.corpora import load_corpus
from transformer.recipes.presets import Preset
from transformer_book.studies import training
from transformer_book.studies.lacking import Missing, Runs, lacking
from transformer_book.studies.recording import SHIPPED, corpus_facts

RECORD = Path(__file__).parent / "record.json"

SEEDS = tuple(range(8))

#: Few pairs with many epochs, and many pairs with few epochs.
SETTINGS: dict[str, Preset] = {
    "few pairs": training.RECIPE.with_changes(
        num_layers=1, max_steps=1200, train_pairs=4_000, test_pairs=1000, validate_every=200
    ),
    "many pairs": training.RECIPE.with_changes(
        num_layers=1, max_steps=1600, train_pairs=25_000, test_pairs=1000, validate_every=200
    ),
}

VARIANTS: dict[str, dict[str, float]] = {
    "base": {},
    "smoothing 0": dict(label_smoothing=0.0),
    "dropout 0": dict(dropout=0.0),
}


def run_variant(preset: Preset, text: training.ShortText) -> dict[str, Any]:
    """Train once, and measure the weights during and after training and the mean of the last."""
    config, model = preset.training, training.make_model(preset)
    every, end = config.validate_every, config.max_steps
    measured = range(every, end + 1, every)
    averaged = range(end, 0, -config.save_every)[: config.keep_last]
    weights = training.train(model, text.train, config, keep={*measured, *averaged})

    def quality(weights: training.Weights) -> dict[str, float]:
        return asdict(training.quality(model, text.held_out, weights))

    return dict(
        curve=[dict(step=step) | quality(weights[step]) for step in measured],
        averaged=quality(minimal.average([weights[step] for step in averaged])),
        last=quality(weights[end]),
    )


SPLIT = "challenge"


def heading() -> dict[str, Any]:
    """Return the corpus and the recipes in the record."""
    settings = {name: preset.to_dict() for name, preset in SETTINGS.items()}
    return dict(corpus=corpus_facts(load_corpus(SHIPPED), SPLIT), settings=settings)


def missing(runs: Runs) -> Missing:
    """Train the variants that a record lacks; with many pairs, dropout was not left out."""
    for case in lacking(runs, seed=SEEDS, setting=SETTINGS, variant=VARIANTS):
        setting, variant = case["setting"], case["variant"]
        if (setting, variant) != ("many pairs", "dropout 0"):
            text = training.short_text(load_corpus(SHIPPED), SETTINGS[setting], split=SPLIT)
            preset = SETTINGS[setting].with_changes(seed=case["seed"], **VARIANTS[variant])
            yield case | run_variant(preset, text), str(case)
