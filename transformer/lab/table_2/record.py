"""Train and record the translation runs of the results page that are missing.

    python -m transformer.lab.table_2.record                    best first, seed by seed
    python -m transformer.lab.table_2.record --list             show the runs and their states
    python -m transformer.lab.table_2.record multi30k-tiny --seeds 1 2

A run that is recorded with the same recipe is skipped. Ctrl-C saves the run in progress and stops;
the same command resumes it. ``timeout -s INT 25m`` in front of the command does so in time.
"""

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from transformer.lab.recording import same_recipe
from transformer.lab.table_2.recorded import RUNS
from transformer.model.files import write_atomically
from transformer.recipes.presets import Preset, get_preset
from transformer.recipes.record import read_record
from transformer.recipes.translation import TranslationRun
from transformer.training.curve import read_curve

#: Presets for a GPU: the published score on Multi30K and its rivals, other directions, more text.
GPU = (
    "multi30k-tiny", "multi30k-tiny-cased", "multi30k-recurrent", "multi30k-convolutional",
    "multi30k-tiny-en-fr", "multi30k-small-de-en", "tatoeba-large", "mixture-base",
)  # fmt: skip

#: Presets that take a CPU at most two hours.
CPU = ("multi30k-tiny-cpu", "multi30k-recurrent-cpu", "multi30k-convolutional-cpu", "tatoeba-small")


def planned(presets: Sequence[str], seeds: Sequence[int]) -> list[Preset]:
    """List the runs: the first seed of all presets, then the second of all, and so on."""
    return [get_preset(name).with_changes(seed=seed) for seed in seeds for name in presets]


def run_name(preset: Preset) -> str:
    """Name the record and the folder of a run."""
    return f"{preset.name}-seed{preset.training.seed}"


def is_recorded(preset: Preset) -> bool:
    """Whether there is a record of this run with the same recipe."""
    path = RUNS / f"{run_name(preset)}.json"
    return path.exists() and same_recipe(read_record(path), preset)


def state(preset: Preset, output: Path) -> str:
    """Describe in a few words how far a run has come."""
    if is_recorded(preset):
        return "recorded"
    curve = read_curve(output / run_name(preset) / "curve.jsonl")
    if curve:
        return f"step {curve[-1]['step']:,} of {preset.training.max_steps:,}"
    stale = (RUNS / f"{run_name(preset)}.json").exists()
    return "recorded with another recipe" if stale else "missing"


def record(preset: Preset, output: Path, data_dir: Path | None = None) -> bool:
    """Train or resume a run and copy its results; return False if a signal stopped it."""
    folder, target = output / run_name(preset), RUNS / f"{run_name(preset)}.json"
    finished = folder / "run.json"
    if not (finished.exists() and same_recipe(read_record(finished), preset)):
        run = TranslationRun(preset, folder, data_dir)
        print(run.describe(), flush=True)
        if not run.train():
            return False
        run.finish(print)
    texts = folder / "translations.json.gz"
    write_atomically(target.with_suffix(f".{texts.name}"), lambda p: shutil.copyfile(texts, p))
    write_atomically(target, lambda p: shutil.copyfile(finished, p))  # last: the run is recorded
    return True


def gpu_works() -> bool:
    """Whether PyTorch can compute on a GPU of this machine."""
    try:
        return torch.cuda.is_available() and float(torch.ones(1, device="cuda").sum()) == 1
    except RuntimeError:
        return False


def main() -> int:
    """Record what is missing; return 1 if something failed or is left."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("presets", nargs="*", metavar="PRESET", help="default: all of this machine")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--data-dir", type=Path, help="folder of your own data files")
    parser.add_argument("--output", type=Path, default=Path("runs"), help="folder of the runs")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no run later")
    parser.add_argument("--list", action="store_true", help="show the runs and their states")
    parser.add_argument("--gpu", action="store_true", help="fail if no GPU can be used")
    options = parser.parse_args()
    gpu, until = gpu_works(), time.time() + 60 * options.minutes
    if options.gpu and not gpu:
        parser.error("PyTorch can use no GPU on this machine")
    try:
        presets = planned(options.presets or (GPU if gpu else CPU), options.seeds)
    except ValueError as error:
        parser.error(str(error))
    failed = False
    for preset in presets:
        if options.list:
            print(f"{run_name(preset):34} {state(preset, options.output)}")
        elif not is_recorded(preset):
            if time.time() > until:
                return 1
            try:
                if not record(preset, options.output, options.data_dir):
                    print(f"{run_name(preset)}: stopped and saved; the same command continues")
                    return 130
            except (ValueError, OSError) as error:  # the other runs may still work
                print(f"{run_name(preset)}: {error}", file=sys.stderr)
                failed = True
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
