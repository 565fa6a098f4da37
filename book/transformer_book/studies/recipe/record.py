"""Train every variant of the small study of the recipe and write the record of chapters 14 and 15.

    python -m transformer_book.studies.recipe.record     about half an hour on one core

Runs that the record holds are kept: a stopped recording continues, on the same machine. Delete the
file to record anew.
"""

import time

import torch

from transformer.data.corpora import load_corpus
from transformer_book.studies.recipe.study import RECORD, SEEDS, SETTINGS, VARIANTS, run_variant
from transformer_book.studies.recording import Recording, corpus_facts, parser
from transformer_book.studies.training import short_text

SPLIT = "challenge"


def main() -> None:
    """Record the variants that are missing."""
    output = parser(__doc__, RECORD).parse_args().output
    torch.set_num_threads(1)
    corpus = load_corpus("tatoeba-en-de")
    recording = Recording(
        output,
        "transformer_book.studies.recipe.record",
        corpus=corpus_facts(corpus, SPLIT),
        settings={name: preset.to_dict() for name, preset in SETTINGS.items()},
    )
    runs = recording.content.setdefault("runs", [])
    done = {(run["setting"], run["variant"], run["seed"]) for run in runs}
    for seed in SEEDS:
        for setting, variants in VARIANTS.items():
            text = short_text(corpus, SETTINGS[setting], split=SPLIT)
            for variant, changes in variants.items():
                if (setting, variant, seed) in done:
                    continue
                started = time.process_time()
                found = run_variant(SETTINGS[setting].with_changes(seed=seed, **changes), text)
                recording.texts |= {
                    f"{setting}, {variant}, seed {seed}, {weights}": texts
                    for weights, texts in found.pop("translations").items()
                }
                about = dict(setting=setting, variant=variant, changes=changes, seed=seed)
                seconds = round(time.process_time() - started, 1)
                runs.append(about | dict(cpu_seconds=seconds) | found)
                recording.save(f"{setting}, {variant}, seed {seed}")


if __name__ == "__main__":
    main()
