"""A small Table 3 (D): dropout, smoothing and beta2 changed one at a time, and averaging."""

import time
from dataclasses import asdict
from itertools import product
from pathlib import Path
from typing import Any

from transformer.data.batching import EncodedPairs, Sentences
from transformer.data.corpora import load_corpus
from transformer.inference.metrics import bleu, chrf
from transformer.inference.translator import Translator
from transformer.recipes.presets import Preset
from transformer.recipes.record import read_record
from transformer_book.studies import training
from transformer_book.studies.recording import SHIPPED, Recording, corpus_facts

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

#: The changes of each variant. Dropout and smoothing of 0 and 0.2 are Table 3 (D); dropout
#: everywhere is a later default of the published code; 0.999 is the usual beta2.
VARIANTS: dict[str, dict[str, dict[str, float]]] = {
    "few pairs": {
        "base": {},
        "dropout 0": dict(dropout=0.0),
        "dropout 0.2": dict(dropout=0.2),
        "dropout everywhere": dict(attention_dropout=0.1, activation_dropout=0.1),
        "smoothing 0": dict(label_smoothing=0.0),
        "smoothing 0.2": dict(label_smoothing=0.2),
        "beta2 0.999": dict(beta2=0.999),
    },
    "many pairs": {
        "base": {},
        "smoothing 0": dict(label_smoothing=0.0),
        "smoothing 0.2": dict(label_smoothing=0.2),
    },
}


def run_variant(preset: Preset, text: training.ShortText) -> dict[str, Any]:
    """Train once, and measure the weights during and after training and the mean of the last."""
    config, model = preset.training, training.make_model(preset)
    every, end = config.validate_every, config.max_steps
    measured = range(every, end + 1, every)
    averaged = range(end, 0, -config.save_every)[: config.keep_last]
    found = training.train(model, text.train, config, keep={*measured, *averaged})
    weights, signatures, texts = found.snapshots, {}, {}

    def scores(name: str, weights: training.Weights) -> dict[str, Any]:
        result = asdict(training.quality(model, text.held_out, weights))
        translator = Translator(model, text.tokenizer)
        texts[name] = translator.translate(
            text.text.source, beam_size=1, batch_size=256, sentence_case=False
        )
        for score in (metric(texts[name], text.text.target) for metric in (bleu, chrf)):
            result[score.name] = score.score
            signatures[score.name] = score.signature
        return result

    return dict(
        losses=[float(found.losses[step - every : step].mean()) for step in measured],
        curve=[
            dict(step=step) | asdict(training.quality(model, text.held_out, weights[step]))
            for step in measured
        ],
        averaged=scores("averaged", training.mean_weights([weights[step] for step in averaged])),
        last=scores("last", weights[end]),
        train=asdict(training.quality(model, first_pairs(text.train, len(text.held_out)))),
        signatures=signatures,
        translations=texts,
    )


def first_pairs(pairs: EncodedPairs, count: int) -> EncodedPairs:
    """Return the first ``count`` pairs, or all if there are fewer."""

    def first(side: Sentences) -> Sentences:
        offsets = side.offsets[: count + 1]
        return Sentences(side.ids[: offsets[-1]], offsets)

    return EncodedPairs(first(pairs.source), first(pairs.target), pairs.pad_id, pairs.bos_id)


def recorded_study(path: Path | str = RECORD) -> dict[str, Any]:
    """Read the recorded results; "runs" has one entry per setting, variant and seed."""
    return read_record(path)


SPLIT = "challenge"


def heading() -> dict[str, Any]:
    """Return the corpus and the recipes in the record."""
    settings = {name: preset.to_dict() for name, preset in SETTINGS.items()}
    return dict(corpus=corpus_facts(load_corpus(SHIPPED), SPLIT), settings=settings)


def fill(recording: Recording) -> None:
    """Train the variants that a record lacks, the first seed of all first."""
    content, texts = recording.content, recording.texts
    corpus, runs = load_corpus(SHIPPED), content.setdefault("runs", [])
    done = {(run["setting"], run["variant"], run["seed"]) for run in runs}
    for seed, (setting, variants) in product(SEEDS, VARIANTS.items()):
        text = training.short_text(corpus, SETTINGS[setting], split=SPLIT)
        for variant, changes in variants.items():
            if (setting, variant, seed) in done:
                continue
            name, started = f"{setting}, {variant}, seed {seed}", time.process_time()
            found = run_variant(SETTINGS[setting].with_changes(seed=seed, **changes), text)
            written = found.pop("translations")
            texts |= {f"{name}, {weights}": each for weights, each in written.items()}
            about = dict(setting=setting, variant=variant, changes=changes, seed=seed)
            seconds = round(time.process_time() - started, 1)
            runs.append(about | dict(cpu_seconds=seconds) | found)
            recording.save(name)
