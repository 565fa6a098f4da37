"""``transformer train`` on a full disk, after a signal, and in several processes."""

import gc
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time

import pytest
from safetensors import safe_open

from tests.cli.conftest import ROOT, command, fails, run, settings
from transformer.recipes.record import read_record
from transformer.training.checkpoint import load_state


def test_a_signal_saves_and_the_same_command_resumes(tmp_path, files):
    folder = tmp_path / "run"
    process = command(
        "train", "smoke", "-o", folder, *files,
        *settings(max_steps=10**6, save_every=50, state_minutes="none"),
    )  # fmt: skip
    deadline = time.monotonic() + 240
    while not (folder / "state.pt").exists():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    assert err == b""
    last = out.decode().splitlines()[-1]
    pattern = r"stopped at step ([\d,]+) of 1,000,000; .* the same command resumes"
    stopped = int(re.fullmatch(pattern, last)[1].replace(",", ""))
    assert load_state(folder / "state.pt")["progress"]["step"] == stopped
    more = settings(max_steps=stopped + 1, save_every=50)
    shown = run("train", "smoke", "-o", folder, *files, *more).stdout
    assert f"resuming from step {stopped:,}" in shown
    assert read_record(folder / "run.json")["steps"] == stopped + 1


def test_a_signal_names_the_translations_that_are_finished(tmp_path, trained):
    output, partial = tmp_path / "out.fr", tmp_path / "out.fr.partial"
    process = command("translate", "-m", trained[0], "--batch-size", 1, "-o", output)
    process.stdin.write(b"the cat\n")
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while not (partial.exists() and partial.stat().st_size):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=60) == 143
    said = process.stderr.read().decode()
    assert said == f"transformer: terminated; the translations before it are in {partial}\n"


def test_only_one_of_two_processes_prints(tmp_path, files):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    launch = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--master-addr=127.0.0.1",
              f"--master-port={port}", "-m", "transformer.cli", "train", "smoke",
              "-o", tmp_path / "run", *files, *settings(max_steps=2)]  # fmt: skip
    environment = os.environ | {
        "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true",
    }  # fmt: skip
    process = subprocess.run(
        [sys.executable, *map(str, launch)],
        env=environment, capture_output=True, text=True, timeout=240,
    )  # fmt: skip
    assert process.returncode == 0, process.stderr[-2000:]
    assert process.stdout.count("training pairs") == 1
    assert ", 2 processes" in process.stdout
    assert process.stdout.count("record: ") == 1
    assert read_record(tmp_path / "run" / "run.json")["steps"] == 2


@pytest.fixture
def small_disk(tmp_path):
    """Mounts a disk of some kilobytes; only root may."""
    disk = tmp_path / "disk"
    disk.mkdir()

    def mount(kilobytes, remount=False, read_only=False):
        options = f"{'remount,' * remount}{'ro,' * read_only}size={kilobytes}k"
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(disk)], capture_output=True
        )
        if done.returncode:
            pytest.skip("cannot mount a small disk here")
        return disk

    yield mount
    gc.collect()  # what failed may still hold a file open there
    subprocess.run(["umount", str(disk)], capture_output=True)


def require_whole_files(folder):
    """Nothing is half-written, whatever stopped the program."""
    for path in folder.rglob("*"):
        assert not path.name.endswith((".tmp", ".part")) and ".saving" not in path.name
        if path.suffix == ".safetensors":
            with safe_open(path, "pt") as file:
                for name in file.keys():  # noqa: SIM118 (it is no dictionary)
                    file.get_tensor(name)
        elif path.suffix == ".json":
            json.loads(path.read_text())
        elif path.suffix == ".pt":
            load_state(path)


@pytest.mark.parametrize("kilobytes", [16, 240])
def test_no_space_is_one_line_and_the_run_resumes_later(small_disk, files, kilobytes, monkeypatch):
    """Space runs out at the tokenizer, or at the state, because another program took it."""
    monkeypatch.setattr("transformer.recipes.translation.require_disk", lambda needs: None)
    folder = small_disk(kilobytes) / "run"
    arguments = "train", "smoke", "-o", folder, *files, *settings()
    fails(*arguments, saying=r"(?i)no space left|cannot write")
    require_whole_files(folder)
    small_disk(20_000, remount=True)
    run(*arguments)
    assert read_record(folder / "run.json")["steps"] == 6


def test_a_read_only_disk_is_one_line_and_its_files_stay(trained, small_disk, files):
    folder = small_disk(20_000)
    begun = "train", "smoke", "-o", folder / "run", *files, *settings(max_steps=1)
    run(*begun)
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    small_disk(20_000, remount=True, read_only=True)
    fails(*begun, "--set", "max_steps=2", saying="Read-only .*; choose another folder")
    fails("average", trained[0], "--last", 1, "-o", folder / "mean", saying="Read-only")
    fails("export", trained[0], folder / "out", "--to", "marian", saying="Read-only")
    after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert after == before
    assert run("translate", "-m", folder / "run", "the cat").stdout.count("\n") == 1
