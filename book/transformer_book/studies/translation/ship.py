"""Put a finished run into the package: its weights in half precision, a model card, its record.

python -m transformer_book.studies.translation.ship runs/tatoeba-small tatoeba-en-de
"""

import argparse
import shutil
from pathlib import Path
from typing import Any

from transformer.inference.model_card import model_card
from transformer.inference.translator import Translator
from transformer.recipes.presets import get_preset
from transformer.recipes.record import hardware_of, read_record, recorded_command
from transformer.saving.locate import SHIPPED_FOLDER
from transformer_book.studies.translation.counts import count_missing
from transformer_book.studies.translation.recorded import RUNS, recorded_runs, with_first_run
from transformer_book.studies.translation.summary import group_runs, precision_of, total_steps

LIMIT = 13_000_000  # bytes of weights that the package may gain by a model

LIMITS = Path(__file__).with_name("limits.txt").read_text(encoding="utf-8").strip()

#: What "you" can be in a language.
YOU = {"de": "du, ihr or Sie", "fr": "tu or vous"}


def record_name(record: dict[str, Any]) -> str:
    """Name a run after its preset and seed, and after its languages or steps where they differ."""
    preset, corpus = get_preset(record["preset"]["name"]), record["corpus"]
    other, steps = corpus["name"] != preset.corpus, total_steps(record)
    changes = list(corpus["languages"]) if other else []
    if "first_run" in record if other else steps != preset.training.max_steps:
        changes.append(f"{steps}-steps")
    precision = precision_of(record)
    # Which half precision it is, the card decides.
    if not changes and (precision == "fp32") != (preset.training.precision == "fp32"):
        changes.append(precision)
    return "-".join([preset.name, *changes, f"seed{record['seed']}"])


def card(name: str, record: dict[str, Any]) -> str:
    """Write the model card from the record, and from those of other seeds of the same recipe."""
    own = record_name(record)
    (same,) = [g for g in group_runs(recorded_runs(RUNS) | {own: record}) if own in g.runs]
    training = record | dict(hardware=hardware_of(record))
    if first := record.get("first_run"):
        training["first_run"] = first | dict(hardware=hardware_of(first))
    return model_card(
        name,
        languages=record["corpus"]["languages"],
        corpus=record["corpus"],
        metrics=record["metrics"],
        parameters=record["parameters"],
        training=training,
        others=[other for run, other in same.runs.items() if run != own],
        preset=record["preset"]["name"],
        # The command of a run that continued another one names a folder of ours.
        command=None if first else recorded_command(record),
        limits=LIMITS.format(you=YOU[record["corpus"]["languages"][1]]),
    )


def main() -> None:
    """Ship the run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("run", type=Path, help="folder of a finished run")
    parser.add_argument("name", help="what Translator.from_pretrained will call it")
    options = parser.parse_args()
    record = with_first_run(read_record(options.run / "run.json"), recorded_runs(RUNS))
    translator = Translator.from_pretrained(options.run / "model")
    if (size := 2 * translator.model.num_parameters()) > LIMIT:  # in float16
        raise ValueError(f"the weights take {size:,} bytes, more than {LIMIT:,}")
    translator.card = card(options.name, record)
    folder = translator.save_pretrained(SHIPPED_FOLDER / options.name, half=True)
    for file in folder.iterdir():
        file.chmod(0o644)
    RUNS.mkdir(exist_ok=True)
    target = RUNS / record_name(record)
    shutil.copyfile(options.run / "run.json", f"{target}.json")
    Path(f"{target}.counts.npz").unlink(missing_ok=True)  # of a former run
    texts = "translations.json.gz"
    shutil.copyfile(options.run / texts, f"{target}.{texts}")
    count_missing([target.name], None, RUNS)
    print(f"{folder}: {size:,} bytes of weights; record: {target}.json")


if __name__ == "__main__":
    main()
