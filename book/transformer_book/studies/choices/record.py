"""Train every row of Table 3 with every seed and write the record of chapter 20.

    python -m transformer_book.studies.choices.record  the size for this machine
    python -m transformer_book.studies.choices.record --scale table-3-settled   eight hours on one
    CPU core
    python -m transformer_book.studies.choices.record --scale table-3-medium    the size for a GPU
    python -m transformer_book.studies.choices.record --rows base A1 --minutes 20

The first seed of all rows comes before the second of any. Ctrl-C saves the run in progress, and the
same command resumes it. Each run names the code that made it, so later commits can add other seeds.
A row recorded with another recipe is recorded again. The translations of all runs lie beside the
record.
"""

import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from transformer.recipes.presets import Preset
from transformer.recipes.record import describe_environment, read_record, write_record
from transformer_book.studies.choices import study
from transformer_book.studies.recording import parser, same_recipe, stored_texts, write_texts

#: Folder of unfinished runs.
FOLDER = Path("runs/table-3")


def record_rows(
    scale: study.Scale,
    output: Path,
    presets: Mapping[str, Preset],
    rows: Sequence[str],
    seeds: Sequence[int],
    command: str,
    data_dir: Path | None,
    until: float,
) -> None:
    """Train and record those of the ``rows`` that are missing, all with the first seed first."""
    runs = read_record(output)["runs"] if output.exists() else []
    texts, environment = stored_texts(output), describe_environment()
    order, text = list(presets), None
    for seed, row in ((seed, row) for seed in seeds for row in rows):
        preset = presets[row].with_changes(seed=seed)
        mine = [run for run in runs if (run["row"], run["seed"]) == (row, seed)]
        if mine and same_recipe(mine[0], preset):
            continue
        text = text or study.scale_text(scale, data_dir)
        place = FOLDER / f"{scale.name}-{row}-seed{seed}"
        found = study.run_row(preset, text, place) if time.time() < until else None
        if found is None:
            raise SystemExit("not all is recorded; the same command continues from here")
        texts[f"{row}, seed {seed}"] = found.pop("translations")
        write_texts(output, texts)
        about = dict(row=row, seed=seed, preset=preset.to_dict())
        runs = [run for run in runs if run not in mine]
        runs.append(about | found | dict(environment=environment))
        runs.sort(key=lambda run: (order.index(run["row"]), run["seed"]))
        write_record(output, dict(command=command, scale=scale.name, runs=runs))
        shutil.rmtree(place)
        results = f"perplexity {found['perplexity']:.2f}, BLEU {found['BLEU']:.1f}"
        print(f"{row}, seed {seed}: {results}, {found['minutes']:.1f} minutes", flush=True)


def main() -> None:
    """Record the rows that are missing."""
    gpu, options = torch.cuda.is_available(), parser(__doc__, None, minutes=True)
    usual = "table-3-medium" if gpu else "table-3-small"
    options.add_argument("--scale", choices=study.SCALES, default=usual)
    options.add_argument("--rows", nargs="+", choices=study.ROWS)
    options.add_argument("--seeds", nargs="+", type=int)
    options.add_argument("--data-dir", type=Path)
    chosen = options.parse_args()
    if not gpu:
        torch.set_num_threads(1)  # models this small are slower on two
    scale = study.SCALES[chosen.scale]
    record_rows(
        scale,
        chosen.output or scale.record,
        {row: study.row_preset(scale, row) for row in study.ROWS},
        chosen.rows or scale.rows,
        chosen.seeds or scale.seeds,
        f"python -m transformer_book.studies.choices.record --scale {scale.name}",
        chosen.data_dir,
        time.time() + 60 * chosen.minutes,
    )


if __name__ == "__main__":
    main()
