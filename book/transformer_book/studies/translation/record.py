"""Train and record the translation runs of the results page that are missing.

    python -m transformer_book.studies.translation.record  best first, seed by seed
    python -m transformer_book.studies.translation.record --list  show the items and their states
    python -m transformer_book.studies.translation.record multi30k-tiny --seeds 1 2

On a GPU, the speed of the large presets comes first: it needs no text. Then come the runs whose
text is on this machine, and last those that need a download; those that cannot have it are named.
What is recorded with the same recipe is skipped. Ctrl-C saves the run in progress and stops; the
same command resumes it. ``timeout -s INT 25m`` in front of the command does so in time.
"""

import argparse
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch

from transformer.data.corpora import load_corpus
from transformer.data.corpora.catalogue import corpus_catalogue
from transformer.recipes.cards import OF_CARD, on_this_card
from transformer.recipes.description import describe
from transformer.recipes.presets import Preset, get_preset
from transformer.recipes.record import read_record, recorded_preset
from transformer.recipes.translation import TranslationRun
from transformer.saving.files import write_atomically
from transformer.training.curve import read_curve
from transformer_book.speed.throughput import record_throughput, throughput_file
from transformer_book.studies.recording import same_recipe
from transformer_book.studies.translation.recorded import RUNS

#: Presets whose speed is measured first on a GPU.
SPEED = ("mixture-base", "wmt14-base", "wmt14-big")

#: Presets for a GPU: the published score on Multi30K and its rivals, other directions, more text.
GPU = (
    "multi30k-tiny", "multi30k-tiny-cased", "multi30k-recurrent", "multi30k-convolutional",
    "multi30k-tiny-en-fr", "multi30k-small-de-en", "tatoeba-large", "mixture-base",
)  # fmt: skip

#: Presets that take a CPU at most two hours.
CPU = ("multi30k-tiny-cpu", "multi30k-recurrent-cpu", "multi30k-convolutional-cpu", "tatoeba-small")


def planned(presets: Sequence[str], seeds: Sequence[int], output: Path) -> list[Preset]:
    """List the runs: the first seed of all presets, then the second of all, and so on.

    A GPU of this machine chooses their batches and precision, unless they have begun in ``output``.
    """
    runs = [get_preset(name).with_changes(seed=seed) for seed in seeds for name in presets]
    return [on_this_card(run, output / run_name(run)) for run in runs]


def run_name(preset: Preset) -> str:
    """Name the record and the folder of a run."""
    return f"{preset.name}-seed{preset.training.seed}"


def is_recorded(preset: Preset) -> bool:
    """Whether there is a record of this run with the same recipe, as fitted to any card."""
    path = RUNS / f"{run_name(preset)}.json"
    if not path.exists():
        return False
    found = read_record(path)
    theirs, mine = recorded_preset(found)["training"], preset.training
    half = "fp32" not in (theirs.get("precision", "fp32"), mine.precision)
    step = mine.batch_tokens * mine.accumulate
    if half and theirs["batch_tokens"] * theirs["accumulate"] == step:
        chosen = {name: theirs[name] for name in OF_CARD if name in theirs}  # by the card
        preset = preset.with_changes(**chosen)
    return same_recipe(found, preset)


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
        print(describe(run), flush=True)
        if not run.train():
            return False
        run.finish(print)
    texts = folder / "translations.json.gz"
    target.with_suffix(".counts.npz").unlink(missing_ok=True)  # of the former translations
    write_atomically(target.with_suffix(f".{texts.name}"), lambda p: shutil.copyfile(texts, p))
    write_atomically(target, lambda p: shutil.copyfile(finished, p))  # last: the run is recorded
    return True


@dataclass(frozen=True)
class Item:
    """One thing to record."""

    name: str
    corpus: str | None  #: the text that it must download first; None if it needs nothing
    state: Callable[[], str]
    record: Callable[[], bool]  #: returns False if a signal stopped it


def plan(
    gpu: bool, presets: Sequence[str], seeds: Sequence[int], output: Path, data_dir: Path | None
) -> list[Item]:
    """List what to record, in order: what needs no text, no download, and a download."""
    here = {entry.name for entry in corpus_catalogue(data_dir) if entry.at_hand}
    speed = SPEED if gpu and not presets else ()
    items = [_speed(on_this_card(get_preset(name))) for name in speed]
    runs = [
        Item(
            run_name(preset),
            None if preset.corpus in here else preset.corpus,
            partial(state, preset, output),
            partial(record, preset, output, data_dir),
        )
        for preset in planned(presets or (GPU if gpu else CPU), seeds, output)
    ]
    return items + sorted(runs, key=lambda item: item.corpus is not None)


def _speed(preset: Preset) -> Item:
    def measure() -> bool:
        print(record_throughput(preset))
        return True

    def state() -> str:
        path = throughput_file(preset)
        return "recorded" if path.exists() and same_recipe(read_record(path), preset) else "missing"

    return Item(f"{preset.name}-throughput", None, state, measure)


def gpu_problem() -> str | None:
    """Say in one line why PyTorch cannot compute on a GPU of this machine; None if it can."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the error says the same
            total = float(torch.ones(2, device="cuda").sum())
    except (RuntimeError, AssertionError) as error:  # no driver, one too old, or a build for CPUs
        return str(error).strip().partition("\n")[0] or type(error).__name__
    return None if total == 2 else f"the sum of two ones is {total} there"


def run_items(items: Sequence[Item], data_dir: Path | None, until: float) -> int:
    """Record what is missing; return 1 if something failed or is left, 130 after a signal."""
    unavailable: dict[str, str] = {}  # corpora, with the reason
    skipped = []
    for item in items:
        if item.state() == "recorded":
            continue
        if time.time() > until:
            skipped.append(f"{item.name}: no time left")
            continue
        try:
            if item.corpus is not None and item.corpus not in unavailable:
                try:
                    load_corpus(item.corpus, data_dir)
                except (ImportError, OSError) as error:
                    unavailable[item.corpus] = str(error)
            if item.corpus in unavailable:
                skipped.append(f"{item.name}: skipped, {unavailable[item.corpus]}")
                continue
            if not item.record():
                print(f"{item.name}: stopped and saved; the same command continues")
                return 130
        except InterruptedError as error:  # a measurement keeps nothing
            print(f"{item.name}: {error}")
            return 130
        except (ImportError, ValueError, OSError, RuntimeError) as error:  # others may still work
            reason = " ".join(str(error).split())[:300]
            skipped.append(f"{item.name}: failed, {reason}")
            print(skipped[-1], file=sys.stderr)
    if skipped:
        print("\n".join(["not recorded:", *skipped]), file=sys.stderr)
    return int(bool(skipped))


def main() -> int:
    """Record what is missing; return 1 if something failed or is left, 2 without a usable GPU."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("presets", nargs="*", metavar="PRESET", help="default: all of this machine")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--data-dir", type=Path, help="folder of your own data files")
    parser.add_argument("--output", type=Path, default=Path("runs"), help="folder of the runs")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no item later")
    parser.add_argument("--list", action="store_true", help="show the items and their states")
    parser.add_argument("--gpu", action="store_true", help="fail if no GPU can be used")
    options = parser.parse_args()
    problem, until = gpu_problem(), time.time() + 60 * options.minutes
    if problem is not None:
        print(f"PyTorch can use no GPU on this machine: {problem}", file=sys.stderr)
        if options.gpu:
            return 2
        print("planning for a CPU", file=sys.stderr)
    try:
        items = plan(
            problem is None, options.presets, options.seeds, options.output, options.data_dir
        )
    except ValueError as error:
        parser.error(str(error))
    if options.list:
        for item in items:
            text = f" (downloads {item.corpus})" if item.corpus else ""
            print(f"{item.name:34} {item.state()}{text}")
        return 0
    return run_items(items, options.data_dir, until)


if __name__ == "__main__":
    sys.exit(main())
