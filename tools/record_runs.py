"""Record the runs of the results page that are missing or stale: `make gpu MINUTES=25`.

    python tools/record_runs.py --list                 what there is to do, and how far it is
    python tools/record_runs.py --minutes 25 --jobs 4  do it, best first, for 25 minutes
    python tools/record_runs.py multi30k-tiny wmt14-base-seed1     only these

A record is stale when its recipe is no longer that of the preset. Every run is a process of its
own in runs/NAME, with its output in runs/NAME.log; small models leave a GPU idle, so several may
share it. The command can be stopped at any time, kill -9 included, and repeated: what has begun is
taken up first. With a time limit, runs that will finish within it come first, then the longest one
begins, to be finished another time.
"""

import argparse
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from record_worker import NO_TIME, RECORDED, UNFINISHED, Place, work
from run_plan import Item, State, choose

from transformer.lab.table_2.recorded import RUNS
from transformer.recipes.requirements import LARGE_CORPORA, duration, requirements
from transformer.recipes.throughput import MEASUREMENTS
from transformer.training.curve import read_curve
from transformer.training.interrupt import Interruption

SCRIPT = Path(__file__)


@dataclass
class Recorder:
    """Starts the workers, best first, and stops them in time.

    Args:
        items: what to record, best first.
        place: where everything lies.
        jobs: workers at once.
        until: time.time() at which all must be over; infinite for no limit.
        start: starts the worker of an item; the bool says that it may not hope to finish.
        say: prints a line.
    """

    items: list[Item]
    place: Place
    jobs: int
    until: float
    start: Callable[[Item, bool], "subprocess.Popen[bytes]"]
    say: Callable[[str], None] = print
    poll_seconds: float = 0.5
    running: dict[Item, "subprocess.Popen[bytes]"] = field(default_factory=dict)
    failed: list[Item] = field(default_factory=list)
    left_over: list[Item] = field(default_factory=list)

    def __post_init__(self):
        limit = self.until - time.time()
        self.reserve = min(20.0, limit / 10)  # for saving
        self.worth_starting = min(60.0, limit / 5)  # less is spent before the first step

    def run(self) -> int | None:
        """Work until all is recorded or time is up; return the signal that ended it, if any."""
        states = {item: self.place.state(item) for item in self.items}
        waiting = [item for item in self.items if states[item].kind != "recorded"]
        waiting.sort(key=lambda item: states[item].step is None)  # what has begun comes first
        told = time.time()
        with Interruption() as interruption:
            while (waiting or self.running) and not interruption.requested:
                if time.time() >= self.until - self.reserve:
                    self.say("time is up")
                    break
                for item in [
                    i for i, process in self.running.items() if process.poll() is not None
                ]:
                    if self._ended(item, self.running.pop(item).returncode) == NO_TIME:
                        waiting.append(item)
                        waiting.sort(key=self.items.index)
                while (chosen := self._next(waiting)) is not None:
                    item, hopeless = chosen
                    waiting.remove(item)
                    for line in large_needs(item):
                        self.say(line)
                    self.running[item] = self.start(item, hopeless)
                    self.say(f"{item.name}: started" + (", to be finished later" * hopeless))
                if waiting and not self.running:
                    break  # too little time for any
                if time.time() - told >= 60:
                    told = time.time()
                    self._tell()
                time.sleep(self.poll_seconds)
            self._stop()
        self.left_over += waiting
        return interruption.number

    def _next(self, waiting: list[Item]) -> tuple[Item, bool] | None:
        """The item to start now, and whether it cannot finish in time; None to wait."""
        left = self.until - self.reserve - time.time()
        if len(self.running) >= self.jobs or left < self.worth_starting:
            return None
        if any(item.alone for item in self.running):
            return None
        able = [item for item in waiting if not (item.alone and self.running)]
        times = {item: self.place.estimate(item) for item in able}
        for item in able:
            if (times[item] or 0.0) <= left:  # an unknown one finds out for itself
                return item, False
        longest = [item for item in able if not item.alone]
        if not longest:
            return None
        begun = {item: (self.place.folder / item.name / "state.pt").exists() for item in longest}
        return max(longest, key=lambda item: (begun[item], times[item])), True

    def _ended(self, item: Item, code: int) -> int:
        """Say what became of an item."""
        if code == RECORDED:
            self.say(f"{item.name}: {summary(self.place, item)}")
        elif code == NO_TIME:
            seconds = self.place.estimate(item) or 0.0
            self.say(f"{item.name}: would take about {duration(seconds)}, later")
        elif code in (UNFINISHED, -signal.SIGTERM, -signal.SIGKILL):
            self.left_over.append(item)
            self.say(f"{item.name}: stopped, {self.place.state(item)}; the same command goes on")
        else:
            self.failed.append(item)
            log = self.place.log(item).read_text(errors="replace").strip().splitlines()
            self.say(f"{item.name}: failed: {log[-1] if log else f'exit code {code}'}")
        return code

    def _stop(self) -> None:
        """Ask all workers to save and stop; after a while, end them."""
        for process in self.running.values():
            process.terminate()
        last = min(self.until, time.time() + 60)
        while self.running:
            for item, process in list(self.running.items()):
                if process.poll() is None and time.time() > last:
                    process.kill()
                    process.wait()
                if process.poll() is not None:
                    self._ended(item, self.running.pop(item).returncode)
            time.sleep(min(0.1, self.poll_seconds))

    def _tell(self) -> None:
        for item in self.running:
            curve = read_curve(self.place.folder / item.name / "curve.jsonl")
            if curve:
                scores = [line["bleu"] for line in curve if "bleu" in line]
                score = f", BLEU {scores[-1]:.1f} on validation" if scores else ""
                self.say(f"{item.name}: step {curve[-1]['step']:,}{score}")


def large_needs(item: Item) -> list[str]:
    """What a run needs whose text is to be downloaded; nothing is said of the others."""
    preset = item.preset()
    large = preset.corpus in LARGE_CORPORA and not item.alone
    return requirements(preset).lines() if large else []


def summary(place: Place, item: Item) -> str:
    """What a new record says, in half a line."""
    record = place.read(item)
    if item.alone:
        rate, share = record["target_tokens_per_second"], record["utilisation"]
        return f"recorded, {rate:,.0f} target tokens/s" + (f", {share:.0%}" if share else "")
    scores = [
        f"{metric['split']} {metric['score']:.2f}"
        for metric in record["metrics"]
        if metric["weights"] == "averaged"
        and metric["name"] == "BLEU"
        and metric["beam_size"] == record["preset"]["beam_size"]
    ]
    return f"recorded, {record['minutes']:.1f} minutes, BLEU {', '.join(scores)}"


def start_worker(options: argparse.Namespace, place: Place, item: Item, hopeless: bool) -> Any:
    """Start the process that records one item; its output goes to the item's log."""
    words = [sys.executable, str(SCRIPT), "--worker", item.name, "--folder", options.folder]
    words += ["--records", options.records, "--measurements", options.measurements]
    words += ["--until", options.until, "--jobs", options.jobs]
    words += ["--data-dir", options.data_dir] if options.data_dir else []
    words += ["--hopeless"] if hopeless else []
    threads = str(max(1, (os.cpu_count() or 1) // options.jobs))
    environment = {"OMP_NUM_THREADS": threads, **os.environ, "PYTHONUNBUFFERED": "1"}
    place.folder.mkdir(parents=True, exist_ok=True)
    with open(place.log(item), "ab") as log:
        return subprocess.Popen(
            [str(word) for word in words],
            stdin=subprocess.PIPE,  # closes when this process dies, which tells the worker
            stdout=log,
            stderr=log,
            env=environment,
            start_new_session=True,  # Ctrl-C in a terminal is for this process, which passes it on
        )


def show(items: list[Item], place: Place) -> None:
    """Print the plan with the state of each item and what is known of its time."""
    width = max((len(item.name) for item in items), default=0)
    total, unknown = 0.0, 0
    for number, item in enumerate(items, start=1):
        state: State = place.state(item)
        seconds = None if state.kind == "recorded" else place.estimate(item)
        if state.kind != "recorded":
            total, unknown = total + (seconds or 0.0), unknown + (seconds is None)
        about = "" if state.kind == "recorded" else "time not known yet"
        about = f"about {duration(seconds)}" if seconds is not None else about
        print(f"{number:3} {item.name:{width}}  {state!s:34} {about}".rstrip())
    print(f"to do: about {duration(total)}, and {unknown} of which the time is not known yet")


def main() -> int:
    """Run the command; 0 if all is recorded, 1 if something failed or is left over."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="presets or single items; the whole plan if none")
    parser.add_argument("--list", action="store_true", help="show the plan and do nothing")
    parser.add_argument("--seeds", nargs="+", type=int, help="of the presets named")
    parser.add_argument("--minutes", type=float, help="time limit for everything")
    parser.add_argument("--jobs", type=int, help="runs at once; default 4 on a GPU, 1 without")
    parser.add_argument("--data-dir", help="the user's own data files")
    parser.add_argument("--folder", default="runs", help="where the runs work")
    parser.add_argument("--records", default=str(RUNS), help="where records of runs go")
    parser.add_argument("--measurements", default=str(MEASUREMENTS), help="and of measurements")
    parser.add_argument("--until", type=float, default=float("inf"), help=argparse.SUPPRESS)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--hopeless", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    place = Place(Path(options.folder), Path(options.records), Path(options.measurements))
    if options.worker:
        item = Item.named(options.worker)
        return work(
            item, place, options.data_dir, options.until, options.hopeless, options.jobs or 1
        )
    if options.minutes is not None:
        options.until = time.time() + 60 * options.minutes
    gpu = torch.cuda.is_available()
    try:
        items = choose(options.names, options.seeds, gpu)
    except ValueError as error:
        parser.error(str(error))
    options.jobs = options.jobs or (4 if gpu else 1)
    if options.list:
        show(items, place)
        return 0
    recorder = Recorder(
        items,
        place,
        options.jobs,
        options.until,
        lambda item, hopeless: start_worker(options, place, item, hopeless),
        lambda line: print(time.strftime("%H:%M:%S"), line, flush=True),
    )
    ended_by = recorder.run()
    if ended_by is not None:
        return 128 + ended_by
    return 1 if recorder.failed or recorder.left_over else 0


if __name__ == "__main__":
    sys.exit(main())
