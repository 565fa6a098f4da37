"""A run folder on a mounted drive, as in Colab: the machine is lost, or the drive disappears."""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from test_killed import ROOT, reference, trainer_in  # noqa: F401 (a fixture)
from tiny_training import assert_equal, at_step, weights_of

from transformer.training.checkpoint import load_state
from transformer.training.run_folder import BEST, keep_state, keep_weights

pytestmark = pytest.mark.usefixtures("unchecked")

# Kills itself in the middle of the second state.
KILLED = """
import sys, pathlib, torch, torch._dynamo
from test_killed import killed_run
torch.set_num_threads(1)
killed_run(pathlib.Path(sys.argv[1]), (torch, "save", 3))
"""


@pytest.fixture
def drive(tmp_path):
    """A folder on another file system than the tests' own."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no other file system to write to")
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Path(folder)


def assert_ends_like(trainer, expected):
    assert trainer.fit() is True
    assert_equal(weights_of(expected.model), weights_of(trainer.model))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_run_killed_on_a_drive_goes_on_from_it_on_another_machine(drive, tmp_path, reference):  # noqa: F811
    path = os.pathsep.join([str(ROOT), str(Path(__file__).parent)])
    environment = dict(os.environ, PYTHONPATH=path, ACCELERATE_USE_CPU="true")
    subprocess.run(
        [sys.executable, "-c", KILLED, drive / "run"], env=environment, check=True, timeout=300
    )
    assert list((drive / "run").glob(".*.tmp")), "it was killed while it was writing"
    # What another machine sees has other inodes, and no process that holds the lock.
    shutil.copytree(drive / "run", tmp_path / "seen again")
    for folder in (tmp_path / "seen again", drive / "run"):
        going_on = trainer_in(folder)
        going_on.resume()
        assert going_on.step == 10
        assert_ends_like(going_on, reference)
        assert not list(folder.rglob("*.tmp"))


def test_a_drive_that_disappears_ends_the_run_and_is_not_made_again(tmp_path, reference):  # noqa: F811
    folder, away = tmp_path / "drive", tmp_path / "away"
    trainer = trainer_in(folder)

    def disappear():
        list(trainer.writer.finished(wait_for_all=True))
        folder.rename(away)

    at_step(trainer, 8, disappear)
    with pytest.raises(OSError, match=f"cannot write {folder}.*: No such file"):
        trainer.fit()
    assert not folder.exists(), "a folder below the place of the drive would be lost"
    away.rename(folder)
    assert load_state(folder / "state.pt")["progress"]["step"] == 5
    assert_ends_like(trainer_in(folder), reference)


def test_nothing_is_written_where_a_folder_was(tmp_path):
    for write in (
        lambda: keep_state({}, tmp_path / "drive"),
        lambda: keep_weights({}, tmp_path / "drive" / BEST),
    ):
        with pytest.raises(OSError, match="drive has disappeared during the run; mount it again"):
            write()
    assert not list(tmp_path.iterdir())
