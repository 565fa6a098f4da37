"""Forked workers encode and translate as the process that made them does, and none hangs.

Each program runs in a process of its own with a limit of time, so that a worker that hangs fails.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIMIT = 120

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

PROGRAM = """
import multiprocessing, warnings
from transformer import Translator

translator = Translator.from_pretrained("tatoeba-en-de")
LINES = ["Where is the train station?", "A man reads.", "No.", "It is late today."] * 100
fork = multiprocessing.get_context("fork")


def pooled(function, items):
    with fork.Pool(2) as pool:
        return pool.map(function, items)
"""

TRANSLATE = """
import torch

def work(lines):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = [translator(lines, beam_size=1), translator.attention(lines[0]).cross.tolist()]
    said = [str(warning.message) for warning in caught]
    return found, said, torch.get_num_threads()

assert torch.get_num_threads() == 2
expected = translator(LINES[:40], beam_size=1)
for (texts, maps), said, threads in pooled(work, [LINES[:40]] * 2):
    assert texts == expected and len(maps) == len(translator.model.decoder) and threads == 1
    assert len(said) == 1 and "torch.set_num_threads(1) in each worker" in said[0], said
assert torch.get_num_threads() == 2
print("the same")
"""


def run(program, **environment):
    inherited = {k: v for k, v in os.environ.items() if k != "TOKENIZERS_PARALLELISM"}
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT, env=inherited | environment, start_new_session=True, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        output, errors = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the workers too
        pytest.fail(f"a worker still waits after {LIMIT} seconds")
    assert output == "the same\n", errors


def test_workers_translate_with_one_thread_and_say_so():
    run(PROGRAM + TRANSLATE, OMP_NUM_THREADS="2")
