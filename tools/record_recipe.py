"""Trains every variant of the small study of the recipe and writes its record.

    python tools/record_recipe.py                 all of it, about ten minutes of one core
    python tools/record_recipe.py --output FILE   and write it elsewhere

Runs that the file already holds are kept, so that a stopped recording goes on where it was, on the
same machine. Delete the file to record anew.
"""

import argparse
import time
from pathlib import Path

import torch

from transformer.data.corpora import load_corpus
from transformer.lab.recipe.study import (
    RECORD,
    SEEDS,
    SETTINGS,
    VARIANTS,
    recorded_study,
    run_variant,
)
from transformer.lab.recipe.training import short_text
from transformer.recipes.record import describe_environment, write_record

SPLIT = "challenge"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=RECORD)
    output = parser.parse_args().output

    torch.set_num_threads(1)
    corpus = load_corpus("tatoeba-en-de")
    record = dict(
        command="python tools/record_recipe.py",
        corpus=dict(name=corpus.name, licence=corpus.licence, sha256=corpus.checksum, split=SPLIT),
        environment=describe_environment(),
        settings={name: preset.to_dict() for name, preset in SETTINGS.items()},
        runs=recorded_study(output)["runs"] if output.exists() else [],
    )
    done = {(run["setting"], run["variant"], run["seed"]) for run in record["runs"]}
    for seed in SEEDS:
        for setting, variants in VARIANTS.items():
            text = short_text(corpus, SETTINGS[setting], split=SPLIT)
            for variant, changes in variants.items():
                if (setting, variant, seed) in done:
                    continue
                started = time.process_time()
                found = run_variant(SETTINGS[setting].with_changes(seed=seed, **changes), text)
                seconds = round(time.process_time() - started, 1)
                record["runs"].append(
                    dict(setting=setting, variant=variant, changes=changes, seed=seed)
                    | dict(cpu_seconds=seconds)
                    | found
                )
                write_record(output, record)
                print(f"{setting}, {variant}, seed {seed}: {seconds} s of CPU", flush=True)


if __name__ == "__main__":
    main()
