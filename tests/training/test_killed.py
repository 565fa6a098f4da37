"""Kill -9 in real processes: nothing that was saved is lost, and the end is the same."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tiny_training import KILLS, LONG, long_trainer, weights_of

from transformer.training.checkpoint import load_state, load_weights
from transformer.training.curve import read_curve

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("killed")
    script = Path(__file__).with_name("tiny_training.py")
    environment = dict(os.environ, PYTHONPATH=str(ROOT), ACCELERATE_USE_CPU="true")
    done = subprocess.run(
        [sys.executable, script, folder],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100 * max(KILLS, 3),
    )
    assert done.returncode == 0, done.stderr
    return folder, json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    trainer = long_trainer(tmp_path_factory.mktemp("reference"))
    assert trainer.fit() is True
    return trainer


def assert_same_end(folder, reference):
    expected = weights_of(reference.model)
    state = load_state(folder / "state.pt")
    assert state["progress"]["step"] == LONG["max_steps"]
    for name, weight in expected.items():
        assert torch.equal(weight, state["model"][name]), name
    names = ["best", *(f"step-{LONG['max_steps'] - back:08d}" for back in (10, 5, 0))]
    assert sorted(p.stem for p in (folder / "checkpoints").iterdir()) == names
    for name in names:
        theirs = load_weights(reference.folder / f"checkpoints/{name}.safetensors")
        mine = load_weights(folder / f"checkpoints/{name}.safetensors")
        assert all(torch.equal(weight, theirs[key]) for key, weight in mine.items())
    losses = [
        [(line["step"], line.get("loss"), line.get("perplexity")) for line in read_curve(path)]
        for path in (folder / "curve.jsonl", reference.folder / "curve.jsonl")
    ]
    assert losses[0] == losses[1]
    assert not list(folder.rglob("*.tmp"))


def test_killed_at_random_moments_it_ends_in_the_same_weights(runs, reference):
    """Three moments; TRANSFORMER_KILLS=20 makes it twenty, every other one while it writes."""
    folder, met = runs
    print("\n".join(met))
    assert len(met) == KILLS and "it had ended" not in met, met
    writing = [where for where in met if where.startswith("operation")]
    assert len(writing) == KILLS // 2
    assert any(not where.endswith("line 0") for where in met), "no kill met one that had begun"
    assert_same_end(folder / "random", reference)


@pytest.mark.parametrize("file", ["state", "weights"])
def test_killed_while_writing_a_checkpoint_the_former_one_is_whole(runs, reference, file):
    folder = runs[0] / file
    assert len(list(folder.rglob("*.tmp"))) == 1, "the kill was to leave half a file"
    assert load_state(folder / "state.pt")["progress"]["step"] == 5
    for weights in (folder / "checkpoints").glob("*.safetensors"):
        load_weights(weights)
    trainer = long_trainer(folder)
    assert trainer.step == 5
    assert trainer.fit() is True
    assert_same_end(folder, reference)
