"""``transformer train`` on a full disk, after a signal, and in several processes."""

import gc
import json
import re
import signal
import subprocess
import time

import pytest
import torch
from safetensors import safe_open

from tests.cli.conftest import command, fails, run, settings
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


def test_two_processes_print_once_and_the_record_counts_them(tmp_path, files):
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("needs gloo")
    words = "train", "smoke", "-o", tmp_path / "run", *files, *settings(max_steps=2)
    launch = "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"
    both = command(*words, launch=launch)
    out, err = (said.decode() for said in both.communicate(timeout=300))
    assert both.returncode == 0, err[-2000:]
    assert out.count("training pairs") == 1 == out.count("record: ")
    assert ", 2 processes" in out
    record = read_record(tmp_path / "run" / "run.json")
    assert record["steps"] == 2 == record["environment"]["hardware"]["devices"]


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
