"""``transformer train`` on a full disk, after a signal, and in several processes."""

import re
import signal
import time

import pytest
import torch

from tests.cli.conftest import command, run, settings
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
    out, err = process.communicate(timeout=300)
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
    deadline = time.monotonic() + 240
    while not (partial.exists() and partial.stat().st_size):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=300) == 143
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
