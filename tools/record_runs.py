"""Train presets and record what came out: `make gpu PRESETS="..." SEEDS="..."`.

One record a preset and seed goes to transformer/experiments/runs/<preset>-seed<seed>.json, where
the pages find it. A record that is there already is not made again, and a run that was stopped
goes on where it was, so the command can be repeated until all is done.
"""

import argparse
import shutil
import sys
from pathlib import Path

from transformer.experiments.translation import TranslationRun
from transformer.training.presets import get_preset

RECORDS = Path(__file__).parents[1] / "transformer" / "experiments" / "runs"


def main() -> int:
    """Run what is missing; return the number of runs that were stopped early."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("presets", nargs="+")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--folder", type=Path, default=Path("runs"))
    parser.add_argument("--data-dir", type=Path)
    options = parser.parse_args()
    presets = [get_preset(name) for name in options.presets]  # unknown names end it before any run
    for preset in presets:
        for seed in options.seeds:
            name = f"{preset.name}-seed{seed}"
            record = RECORDS / f"{name}.json"
            if record.exists():
                print(f"{name}: recorded already", flush=True)
                continue
            run = TranslationRun(
                preset.with_changes(seed=seed), options.folder / name, options.data_dir
            )
            print(run.describe(), flush=True)
            if not run.train():
                print(f"{name}: stopped at step {run.trainer.step}; the same command goes on")
                return 1
            run.finish(print)
            RECORDS.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(options.folder / name / "run.json", record)
    return 0


if __name__ == "__main__":
    sys.exit(main())
