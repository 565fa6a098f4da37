"""One worker of tools/record_runs.py: records one run or one measurement, and says how it ended."""

import fcntl
import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from run_plan import Item, State, difference, state_of, step_of

from transformer.lab.speed.step_time import measure_step_time
from transformer.recipes.record import read_record, write_record
from transformer.recipes.requirements import LARGE_CORPORA
from transformer.recipes.throughput import (
    measure_throughput,
    preset_batches,
    random_batches,
)
from transformer.recipes.timing import RunTime, estimate_time, preview
from transformer.recipes.translation import TranslationRun
from transformer.training.checkpoint import write_atomically

# How a worker ends. Any other number is a failure.
RECORDED, UNFINISHED, NO_TIME = 0, 75, 76

#: Seconds that a measurement is taken to need: most compile, to be timed and to be profiled.
MEASUREMENT_SECONDS = 180.0


@dataclass(frozen=True)
class Place:
    """Where everything lies.

    Args:
        folder: of the runs at work; each has NAME/, NAME.log, NAME.lock and NAME.estimate.json.
        records: of finished runs.
        measurements: of throughput.
    """

    folder: Path
    records: Path
    measurements: Path

    def record(self, item: Item) -> Path:
        """File of an item's record."""
        return (self.measurements if item.alone else self.records) / f"{item.name}.json"

    def read(self, item: Item) -> dict[str, Any]:
        """An item's record."""
        return read_record(self.record(item))

    def log(self, item: Item) -> Path:
        """File of a worker's output."""
        return self.folder / f"{item.name}.log"

    def state(self, item: Item) -> State:
        """How far an item has come."""
        return state_of(item, self.folder / item.name, self.record(item))

    def write_estimate(self, item: Item, seconds: float, whole: float) -> None:
        """Write down what is left of a run, and what one from the start would take."""
        text = json.dumps(dict(seconds=seconds, whole=whole))
        path = self.folder / f"{item.name}.estimate.json"
        write_atomically(path, lambda p: p.write_text(text, encoding="utf-8"))

    def estimate(self, item: Item) -> float | None:
        """Seconds that an item takes, as a worker measured them on it or on another seed."""
        if item.alone:
            return MEASUREMENT_SECONDS
        own = self.folder / f"{item.name}.estimate.json"
        others = sorted(self.folder.glob(f"{item.preset_name}-seed*.estimate.json"))
        for path, key in [(own, "seconds"), *((path, "whole") for path in others)]:
            try:
                return float(json.loads(path.read_text(encoding="utf-8"))[key])
            except (OSError, ValueError, KeyError):
                continue
        return None


def work(
    item: Item, place: Place, data_dir: str | None, until: float, hopeless: bool, jobs: int
) -> int:
    """Record an item, as the process of a worker does.

    Args:
        item: what to record.
        place: where everything lies.
        data_dir: the user's own data files.
        until: time.time() at which all must be over.
        hopeless: begin even if it cannot be finished in time.
        jobs: how many workers share the device, for the record.

    Returns:
        How it ended.
    """
    threading.Thread(target=_stop_with_parent, daemon=True).start()
    with _only_one(place.folder / f"{item.name}.lock"):
        if place.state(item).kind == "recorded":  # by a worker that outlived its parent
            return RECORDED
        return (
            _measure(item, place, data_dir)
            if item.alone
            else _train(item, place, data_dir, until, hopeless, jobs)
        )


def _train(
    item: Item, place: Place, data_dir: str | None, until: float, hopeless: bool, jobs: int
) -> int:
    preset, folder = item.preset(), place.folder / item.name
    if folder.exists() and (folder / "state.pt").exists() and step_of(folder, preset) is None:
        _set_aside(folder)
    finished = folder / "run.json"
    if finished.exists() and not difference(read_record(finished), preset):
        _publish(item, place, jobs)  # it was stopped after all the work and before this line
        return RECORDED
    if preset.corpus in LARGE_CORPORA:
        print("\n".join(preview(preset).lines()))  # before anything is downloaded
    run = TranslationRun(preset, folder, data_dir)
    left = estimate_time(preset, run.trainer, run.translator, run.validation, run.tests)
    print(run.describe(left=left))
    begin = run.trainer.step
    _write_estimate(item, place, run, left, begin)
    if not hopeless and time.time() + slack(left.total) > until:
        return NO_TIME
    trained = run.train()
    _write_estimate(item, place, run, left, begin)
    if not trained:
        return UNFINISHED
    # From here a polite signal changes nothing: there is no state to save in between, and whoever
    # sends it waits a moment before the impolite one.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    run.finish(print)
    _publish(item, place, jobs)
    return RECORDED


def slack(seconds: float) -> float:
    """An estimate with room for what was not timed: start-up is over, checkpoints are not."""
    return 1.2 * seconds + 5


def _write_estimate(item: Item, place: Place, run: Any, left: RunTime, begin: int) -> None:
    """Scale what was estimated at step ``begin`` to where the run stands."""
    total = run.preset.training.max_steps
    per_step = (left.training + left.validation) / max(1, total - begin)
    rest = slack(per_step * (total - run.trainer.step) + left.evaluation)
    place.write_estimate(item, rest, slack(per_step * total + left.evaluation))


def _measure(item: Item, place: Place, data_dir: str | None) -> int:
    preset = item.preset()
    if preset.corpus in LARGE_CORPORA:  # a download of gigabytes would tell nothing more
        batches, text = random_batches(preset), "random tokens, 28 a sentence"
    else:
        batches, text = preset_batches(preset, data_dir), preset.corpus
    try:
        measured = measure_throughput(preset, batches, text)
        parts = measure_step_time(preset.model, batches, preset.training)
    except InterruptedError:
        return UNFINISHED
    print(measured)
    write_record(place.record(item), measured.to_record() | dict(step_time=parts.to_record()))
    return RECORDED


def _publish(item: Item, place: Place, jobs: int) -> None:
    """Put a finished run where the pages find it: its translations, and last its record."""
    folder, target = place.folder / item.name, place.record(item)
    translations = folder / "translations.json.gz"
    if translations.exists():
        copy = target.with_name(f"{item.name}.translations.json.gz")
        write_atomically(copy, lambda p: shutil.copyfile(translations, p))
    # Minutes mean something only together with how many runs shared the device.
    write_record(target, read_record(folder / "run.json") | dict(jobs_at_once=jobs))


def _set_aside(folder: Path) -> None:
    """Rename a run that this recipe cannot go on with: it may be somebody's only copy."""
    number = 1
    while (other := folder.with_name(f"{folder.name}.old{number}")).exists():
        number += 1
    folder.rename(other)
    print(f"{folder} held another recipe's run, now in {other}")


@contextmanager
def _only_one(path: Path) -> Iterator[None]:
    """Wait until no other process works on the same item; a dead one holds nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _stop_with_parent() -> None:
    """Ask this process to save and stop when the pipe from its parent closes: that one has died."""
    if os.read(0, 1) == b"":
        os.kill(os.getpid(), signal.SIGTERM)
