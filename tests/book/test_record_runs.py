"""`make gpu`: best first, within its time, several at once, and stopped at any moment."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import record_runs
from record_runs import NO_TIME, RECORDED, UNFINISHED, Recorder
from record_worker import Place
from run_plan import Item
from toy_recording import TOY, TOYS, write_data

from transformer.recipes.presets import PRESETS
from transformer.recipes.record import read_record, write_record
from transformer.training.checkpoint import load_state

ROOT = Path(__file__).resolve().parents[2]
DRIVER = Path(__file__).with_name("toy_recording.py")


@pytest.fixture(autouse=True)
def toys(monkeypatch):
    """The toy presets of the processes exist in this one too, and only here."""
    for name, preset in TOYS.items():
        monkeypatch.setitem(PRESETS, name, preset)


class FakeWorker:
    """Ends when the clock has gone on by ``seconds``, or a second after it was asked to stop."""

    def __init__(self, shop, item, hopeless):
        self.shop, self.item = shop, item
        self.returncode, self.asked = None, None
        self.gives_up = shop.finds_no_time(item, hopeless)
        self.ends = shop.now + (0.0 if self.gives_up else shop.takes(item))

    def poll(self):
        shop = self.shop
        if self.returncode is None and self.asked is not None and shop.now >= self.asked + 1:
            self.returncode = UNFINISHED
            shop.begun.append(self.item)
        elif self.returncode is None and shop.now >= self.ends:
            self.returncode = RECORDED
            if self.gives_up:
                self.returncode = NO_TIME
                seconds = shop.takes(self.item)
                shop.place.write_estimate(self.item, seconds, seconds)
            elif self.item in shop.broken:
                shop.place.log(self.item).write_text("a traceback\nValueError: no good\n")
                self.returncode = 1
            else:
                shop.finish(self.item)
        return self.returncode

    def terminate(self):
        self.asked = self.shop.now if self.asked is None else self.asked

    def kill(self):
        self.returncode = -signal.SIGKILL
        self.shop.killed.append(self.item)

    def wait(self):
        pass


class Shop:
    """A place, a clock and fake workers: what is started, when, and beside what."""

    def __init__(self, folder, monkeypatch):
        self.place = Place(folder / "runs", folder / "records", folder / "measurements")
        for path in (self.place.folder, self.place.records, self.place.measurements):
            path.mkdir()
        self.now, self.started, self.begun, self.killed, self.broken = 0.0, [], [], [], set()
        self.seconds, self.until, self.said, self.most = {}, float("inf"), [], 0
        monkeypatch.setattr(record_runs.time, "time", lambda: self.now)
        monkeypatch.setattr(record_runs.time, "sleep", self.sleep)

    def sleep(self, seconds):
        self.now += seconds

    def takes(self, item):
        return self.seconds.get(item.name, 100.0)

    def finds_no_time(self, item, hopeless):
        return not (hopeless or item.alone) and self.now + self.takes(item) > self.until

    def finish(self, item):
        preset = item.preset()
        metric = dict(split="test", weights="averaged", name="BLEU", beam_size=2, score=12.3)
        record = dict(preset=preset.to_dict(), minutes=1.0, metrics=[metric])
        record |= dict(target_tokens_per_second=5.0, utilisation=0.5)
        write_record(self.place.record(item), record)

    def run(self, items, jobs=1, minutes=None):
        self.until = float("inf") if minutes is None else self.now + 60 * minutes
        recorder = Recorder(items, self.place, jobs, self.until, None, self.said.append)

        def start(item, hopeless):
            self.started.append((item.name, self.now, hopeless))
            worker = FakeWorker(self, item, hopeless)
            names = [*(running.name for running in recorder.running), item.name]
            self.most = max(self.most, len(names))
            if any(name.endswith("throughput") for name in names):
                assert len(names) == 1, "a measurement was not alone"
            return worker

        recorder.start = start
        self.signal = recorder.run()
        return recorder

    def order(self):
        return [name for name, _, _ in self.started]


@pytest.fixture
def shop(tmp_path, monkeypatch):
    return Shop(tmp_path, monkeypatch)


def items(*names):
    return [Item.named(name) for name in names]


def test_all_in_order_and_nothing_twice(shop):
    work = items("toy-throughput", "toy-seed1", "smoke-seed1", "toy-seed2")
    shop.finish(work[2])
    recorder = shop.run(work)
    assert shop.order() == ["toy-throughput", "toy-seed1", "toy-seed2"]
    assert not recorder.failed and not recorder.left_over and shop.signal is None
    shop.started.clear()
    shop.run(work)
    assert shop.started == []


def test_several_at_once_but_measurements_alone(shop):
    work = items("toy-throughput", *(f"toy-seed{i}" for i in range(1, 7)), "smoke-throughput")
    shop.run(work, jobs=3)
    assert shop.most == 3
    assert shop.order() == [item.name for item in work]
    assert shop.now == pytest.approx(100 + 200 + 100, abs=10)


def test_what_finishes_in_time_comes_first_then_the_longest_begins(shop):
    work = items("toy-long-seed1", "smoke-seed1", "toy-seed1", "tatoeba-small-seed1")
    shop.seconds = {"toy-long-seed1": 2000.0, "smoke-seed1": 300.0, "tatoeba-small-seed1": 900.0}
    recorder = shop.run(work, minutes=10)
    # The long ones find out that there is no time for them; what is left is for the longest.
    hopeful = [name for name, _, hopeless in shop.started if not hopeless]
    assert hopeful == ["toy-long-seed1", "smoke-seed1", "toy-seed1", "tatoeba-small-seed1"]
    assert [name for name, _, hopeless in shop.started if hopeless] == ["toy-long-seed1"]
    assert [item.name for item in shop.begun] == ["toy-long-seed1"]
    assert shop.now <= 600 and not shop.killed
    assert {item.name for item in recorder.left_over} == {"toy-long-seed1", "tatoeba-small-seed1"}
    assert shop.place.state(work[2]).kind == "recorded"


def test_another_seed_s_time_is_known_beforehand(shop):
    work = items("toy-long-seed1", "toy-long-seed2", "toy-seed1")
    shop.seconds = {"toy-long-seed1": 2000.0, "toy-long-seed2": 2000.0}
    shop.run(work, jobs=1, minutes=5)
    assert shop.order() == ["toy-long-seed1", "toy-seed1", "toy-long-seed1"]


def test_what_has_begun_is_taken_up_first(shop, monkeypatch):
    work = items("toy-seed1", "toy-seed2", "toy-seed3")
    monkeypatch.setattr(
        "run_plan.step_of", lambda folder, _: 5 if folder.name == "toy-seed3" else None
    )
    shop.run(work)
    assert shop.order() == ["toy-seed3", "toy-seed1", "toy-seed2"]


def test_nothing_begins_when_no_time_is_left_for_it(shop):
    shop.seconds = {"toy-seed1": 560.0}
    recorder = shop.run(items("toy-seed1", "toy-seed2"), minutes=10)
    assert shop.order() == ["toy-seed1"] and [i.name for i in recorder.left_over] == ["toy-seed2"]


def test_a_failure_is_told_and_the_others_go_on(shop):
    work = items("toy-seed1", "toy-seed2")
    shop.broken = {work[0]}
    recorder = shop.run(work)
    assert recorder.failed == [work[0]] and shop.place.state(work[1]).kind == "recorded"
    assert "toy-seed1: failed: ValueError: no good" in shop.said
    assert any(
        line.startswith("toy-seed2: recorded, 1.0 minutes, BLEU test 12.30") for line in shop.said
    )


def test_a_signal_stops_all_politely(shop, monkeypatch):
    work = items("toy-seed1", "toy-seed2", "toy-seed3")

    asked = []

    def sleep(seconds):
        shop.now += seconds
        if shop.now >= 20 and not asked:
            asked.append(shop.now)
            signal.raise_signal(signal.SIGTERM)

    monkeypatch.setattr(record_runs.time, "sleep", sleep)
    recorder = shop.run(work, jobs=2)
    assert shop.signal == signal.SIGTERM and shop.now < 30
    assert {item.name for item in shop.begun} == {"toy-seed1", "toy-seed2"} and not shop.killed
    assert len(recorder.left_over) == 3


def test_who_does_not_stop_is_ended_at_the_limit(shop, monkeypatch):
    monkeypatch.setattr(FakeWorker, "terminate", lambda self: None)
    shop.seconds = {"toy-seed1": 500.0}
    # It hopes to finish: what it says of itself is wrong.
    monkeypatch.setattr(shop, "finds_no_time", lambda item, hopeless: False)
    recorder = shop.run(items("toy-seed1"), minutes=5)
    assert [item.name for item in shop.killed] == ["toy-seed1"] and shop.now <= 301
    assert recorder.left_over == shop.killed


def test_a_large_download_is_announced_with_what_it_needs(shop):
    shop.run(items("wmt14-base-seed1", "toy-seed1"))
    start = shop.said.index("wmt14-base-seed1: started")
    announced = "\n".join(shop.said[:start])
    assert "disk: 5.7 GB" in announced and "63,082,496 parameters" in announced
    assert not any("needs of toy" in line for line in shop.said)


# -------------------------------------------------------------- the real command, real processes


def places(folder):
    options = ["--folder", folder / "runs", "--records", folder / "records"]
    return [*options, "--measurements", folder / "measurements"]


def here(monkeypatch, folder, *words):
    """The command in this process, for what starts no worker."""
    words = ["record_runs.py", *words, *places(folder)]
    monkeypatch.setattr(sys, "argv", [str(word) for word in words])
    return record_runs.main()


def command(folder, *words):
    """The command as a process of its own, with toy presets."""
    environment = dict(os.environ, OMP_NUM_THREADS="1", ACCELERATE_USE_CPU="true")
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "tools")])
    options = [*places(folder), "--data-dir", write_data(folder / "data")]
    return subprocess.Popen(
        [str(word) for word in (sys.executable, DRIVER, *words, *options)],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip


def finish(process, code=0):
    output = process.communicate(timeout=300)[0]
    assert process.returncode == code, output
    return output


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.1)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("gpu")
    words = ["toy", "toy-throughput", "--seeds", 1, 2, "--jobs", 2, "--minutes", 10]
    return folder, finish(command(folder, *words))


def test_two_jobs_record_two_seeds_and_a_measurement(recorded):
    folder, output = recorded
    records = [read_record(folder / f"records/toy-seed{seed}.json") for seed in (1, 2)]
    for seed, record in enumerate(records, start=1):
        assert record["preset"] == {**TOY.to_dict(), "name": "toy", "training": {
            **TOY.training.to_dict(), "seed": seed}}  # fmt: skip
        assert record["steps"] == 30 and record["jobs_at_once"] == 2
        assert (folder / f"records/toy-seed{seed}.translations.json.gz").is_file()
        assert f"toy-seed{seed}: recorded" in output
    assert records[0]["curve"][0]["loss"] != records[1]["curve"][0]["loss"]
    measured = read_record(folder / "measurements/toy-throughput.json")
    assert measured["kind"] == "throughput" and measured["text"] == "tatoeba-en-de"
    assert measured["step_time"]["kinds"]["matrix products"] > 0
    assert output.index("toy-throughput: recorded") < output.index("toy-seed1: started")
    estimate = json.loads((folder / "runs/toy-seed1.estimate.json").read_text())
    assert 0 < estimate["seconds"] < estimate["whole"]


def test_the_second_time_there_is_nothing_to_do(recorded, monkeypatch, capsys):
    folder, _ = recorded
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.json*")}
    assert here(monkeypatch, folder, "toy", "toy-throughput", "--seeds", 1, 2) == 0
    assert capsys.readouterr().out == ""
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*.json*")} == before
    assert here(monkeypatch, folder, "toy", "--seeds", 1, 3, "--list") == 0
    first, second, last = capsys.readouterr().out.splitlines()
    assert first.split()[1:] == ["toy-seed1", "recorded"]
    # The time of a new seed is that of an old one.
    assert "toy-seed3" in second and "missing" in second and "about" in second
    assert last.endswith("0 of which the time is not known yet")


def test_a_record_that_was_not_copied_is_copied_and_not_made_again(recorded):
    folder, _ = recorded
    record = folder / "records/toy-seed2.json"
    whole = read_record(record)
    record.unlink()
    finish(command(folder, "toy-seed2"))
    assert read_record(record) == whole | dict(jobs_at_once=1)


def unfinished(folder, name):
    try:
        return load_state(folder / "runs" / name / "state.pt")["progress"]["step"]
    except (FileNotFoundError, ValueError):
        return None


def gone(folder, name):
    """No process holds the lock of an item any more."""
    import fcntl

    with open(folder / "runs" / f"{name}.lock") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_stopped_it_goes_on_where_it_was(tmp_path, number):
    """Whatever stops the command, its workers save and end, and the next command goes on."""
    process = command(tmp_path, "toy-long-seed1")
    curve = tmp_path / "runs/toy-long-seed1/curve.jsonl"
    wait_for(lambda: curve.exists() and curve.read_text().count("\n") > 20)
    process.send_signal(number)
    output = process.communicate(timeout=60)[0]
    assert process.returncode == (-number if number == signal.SIGKILL else 128 + number), output
    wait_for(lambda: gone(tmp_path, "toy-long-seed1"), 60)
    step = unfinished(tmp_path, "toy-long-seed1")
    assert step is not None and step >= 20
    if number != signal.SIGKILL:
        assert f"toy-long-seed1: stopped, unfinished at step {step}" in output
    if number != signal.SIGTERM:
        return
    # With a limit of seconds: it is taken up, and stopped again by the limit.
    again = finish(command(tmp_path, "toy-long-seed1", "--minutes", 0.75), code=1)
    assert "to be finished later" in again and "time is up" in again
    assert unfinished(tmp_path, "toy-long-seed1") > step
    log = (tmp_path / "runs/toy-long-seed1.log").read_text()
    assert f"going on from step {step}" in log


def test_a_folder_of_another_recipe_is_set_aside(recorded):
    folder, _ = recorded
    old = folder / "runs/toy-seed1"
    # As if the preset had been changed after the run: the state is of another one.
    (folder / "runs/toy-seed5").mkdir()
    (folder / "runs/toy-seed5/state.pt").write_bytes((old / "state.pt").read_bytes())
    finish(command(folder, "toy-seed5"))
    assert read_record(folder / "records/toy-seed5.json")["seed"] == 5
    assert (folder / "runs/toy-seed5.old1/state.pt").is_file()


def test_unknown_names_end_it_at_once(tmp_path, monkeypatch, capsys):
    with pytest.raises(SystemExit, match="2"):
        here(monkeypatch, tmp_path, "multi30k-tin")
    assert "did you mean 'multi30k-tiny'" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()
