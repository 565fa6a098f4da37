"""Trains every row of Table 3 with every seed and writes the record that chapter 18 draws from.

    python tools/record_table_3.py                          at the size for a CPU: 1.5 hours
    python tools/record_table_3.py --scale table-3-medium   at the size for a GPU
    python tools/record_table_3.py --rows base A1 --minutes 20

The first seed of all rows comes before the second of any. Each run is written down when it is done
and kept from then on; Ctrl-C saves the one that is running, and the same command goes on. A run
that another recipe made is made again.
"""

import argparse
import shutil
import time
from pathlib import Path
from typing import Any

import torch
from run_plan import difference

from transformer.lab.table_3.study import ROWS, SCALES, Scale, row_preset, run_row, scale_text
from transformer.recipes.presets import Preset
from transformer.recipes.record import describe_environment, read_record, write_record

FOLDER = Path("runs") / "table-3"


def record_rows(
    scale: Scale,
    output: Path,
    presets: dict[str, Preset],
    rows: list[str],
    seeds: list[int],
    command: str,
    data_dir: Path | None = None,
    folder: Path = FOLDER,
    until: float = float("inf"),
) -> bool:
    """Record what is missing; False if it was interrupted or time ran out.

    Args:
        scale: its text is read.
        output: file of the record.
        presets: what every row trains, in the order of the record.
        rows: those to train now.
        seeds: all rows with the first seed come first.
        command: that repeats this.
        data_dir: where corpora lie.
        folder: of unfinished runs.
        until: no run begins later, in seconds of ``time.time()``.
    """
    runs: list[dict[str, Any]] = read_record(output)["runs"] if output.exists() else []
    text = None
    for seed in seeds:
        for row in rows:
            preset = presets[row].with_changes(seed=seed)
            mine = [run for run in runs if (run["row"], run["seed"]) == (row, seed)]
            if mine and not difference(mine[0], preset):
                continue
            if time.time() > until:
                return False
            text = scale_text(scale, data_dir) if text is None else text
            place = folder / f"{scale.name}-{row}-seed{seed}"
            found = run_row(preset, text, place)
            if found is None:
                return False
            runs = [run for run in runs if run not in mine]
            about = dict(row=row, seed=seed, preset=preset.to_dict())
            runs.append(about | found | dict(environment=describe_environment()))
            order = list(presets)
            runs.sort(key=lambda run: (order.index(run["row"]), run["seed"]))
            write_record(output, dict(command=command, scale=scale.name, runs=runs))
            shutil.rmtree(place)
            print(
                f"{row}, seed {seed}: perplexity {found['perplexity']:.2f}, BLEU "
                f"{found['BLEU']:.1f}, {found['minutes']:.1f} minutes",
                flush=True,
            )
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    gpu = torch.cuda.is_available()
    parser.add_argument(
        "--scale", choices=SCALES, default="table-3-medium" if gpu else "table-3-small"
    )
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=list(ROWS))
    parser.add_argument("--seeds", nargs="+", type=int)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no run later")
    parser.add_argument("--output", type=Path, help="default: where the book reads it")
    parser.add_argument("--data-dir", type=Path)
    options = parser.parse_args()
    if not gpu:
        torch.set_num_threads(1)  # models this small are slower on two
    scale = SCALES[options.scale]
    whole = record_rows(
        scale,
        options.output or scale.record,
        {row: row_preset(scale, row) for row in ROWS},
        options.rows,
        options.seeds or list(scale.seeds),
        f"python tools/record_table_3.py --scale {scale.name}",
        options.data_dir,
        until=time.time() + 60 * options.minutes,
    )
    if not whole:
        raise SystemExit("not all is recorded; the same command goes on from here")


if __name__ == "__main__":
    main()
