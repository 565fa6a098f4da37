"""The folder of a run: full and closed disks, damaged states, and a second process."""

import builtins
import errno
import io
import os
import random
import re
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from tiny_training import assert_equal, at_step, make_pairs, make_trainer, weights_of

from transformer.training.checkpoint import load_state, load_weights, save_state, save_weights
from transformer.training.run_folder import DAMAGED_STATE, FORMER_STATE, LOCK, FolderInUseError

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.usefixtures("unchecked")
RUN = dict(max_steps=12, save_every=3, validate_every=4, keep_last=2, accumulate=2)


def trainer_in(folder, **changes):
    return make_trainer(folder, validation=make_pairs(10, seed=1), **RUN | changes)


@pytest.fixture(scope="module")
def undisturbed(unchecked, tmp_path_factory):
    trainer = trainer_in(tmp_path_factory.mktemp("undisturbed"))
    assert trainer.fit()
    return weights_of(trainer.model)


def assert_ends_like(trainer, weights):
    assert trainer.fit() is True
    assert_equal(weights, weights_of(trainer.model))


# ---------------------------------------------------------------------- disks


@pytest.fixture
def refuse_writing(monkeypatch):
    """Make every ``open`` for writing in a folder fail from now on."""

    def refuse(folder, number):
        def guarded(file, mode="r", *arguments, **options):
            if str(file).startswith(str(folder)) and set(mode) & set("wa+x"):
                raise OSError(number, os.strerror(number), file)
            return real(file, mode, *arguments, **options)

        real = open
        monkeypatch.setattr(builtins, "open", guarded)
        monkeypatch.setattr(io, "open", guarded)

    yield refuse


@pytest.mark.parametrize(
    "number, says",
    [
        (errno.EROFS, "Read-only file system; choose another folder"),
        (errno.ENOSPC, "No space left on device; make room and try again"),
    ],
)
@pytest.mark.parametrize("step", [0, 8])
def test_a_disk_that_refuses_gives_one_line_and_the_run_resumes(
    tmp_path, undisturbed, refuse_writing, monkeypatch, number, says, step
):
    def run():
        if not step:
            refuse_writing(tmp_path, number)
        trainer = trainer_in(tmp_path)

        def refuse():
            list(trainer.writer.finished(wait_for_all=True))  # the state of step 6 is written
            refuse_writing(tmp_path, number)

        at_step(trainer, step, refuse)
        trainer.fit()

    with pytest.raises(OSError, match=f"cannot write {tmp_path}.*: {says}$"):
        run()
    monkeypatch.undo()
    again = trainer_in(tmp_path)
    again.resume()
    assert again.step == (6 if step else 0)
    assert_ends_like(again, undisturbed)
    assert not list(tmp_path.rglob("*.tmp"))


def test_a_drive_that_disappears_ends_the_run_and_is_not_made_again(tmp_path, undisturbed):
    """As in Colab."""
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
    assert load_state(folder / "state.pt")["progress"]["step"] == 6
    assert_ends_like(trainer_in(folder), undisturbed)


# ---------------------------------------------------------------------- damage


def flip(path, at, bit=3):
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(data)


@pytest.mark.parametrize("save, load", [(save_weights, load_weights), (save_state, load_state)])
def test_no_flipped_bit_is_loaded_as_data(tmp_path, save, load):
    """Flip a bit in every 5th byte: either an error, or the identical content."""
    path = tmp_path / "file"
    content = {"a": torch.linspace(-1, 1, 60), "b.c": torch.arange(6).view(2, 3).half()}
    save(content, path)
    whole, noticed = path.read_bytes(), 0
    rng = random.Random(0)
    for at in range(0, len(whole), 5):
        path.write_bytes(whole)
        flip(path, at, rng.randrange(8))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = load(path)
        except ValueError as error:
            assert str(path) in str(error) and "\n" not in str(error)
            noticed += 1
        else:
            assert found.keys() == content.keys()
            assert all(torch.equal(found[name], content[name]) for name in content), at
    assert noticed > 50


def test_a_damaged_state_is_reported_and_the_previous_one_used(tmp_path, undisturbed):
    trainer_in(tmp_path, max_steps=10, log_every=12).fit()
    assert load_state(tmp_path / FORMER_STATE)["progress"]["step"] == 9
    weights = load_state(tmp_path / "state.pt")["model"]["embedding.weight"].numpy().tobytes()
    flip(tmp_path / "state.pt", (tmp_path / "state.pt").read_bytes().index(weights))
    damaged = (tmp_path / "state.pt").read_bytes()
    with pytest.warns(UserWarning, match=r"state\.pt is not a whole.*continuing from former-state"):
        resumed = trainer_in(tmp_path)
        resumed.resume()
    # The undamaged state now has this name, so that the next save does not keep the damaged one.
    assert resumed.step == load_state(tmp_path / "state.pt")["progress"]["step"] == 9
    assert (tmp_path / DAMAGED_STATE).read_bytes() == damaged
    assert_ends_like(resumed, undisturbed)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.EIO, "a bad cable"),
        PermissionError(errno.EACCES, "not yours"),
        MemoryError("too little"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
    ],
)
def test_a_state_that_cannot_be_read_now_is_not_taken_for_damaged(tmp_path, monkeypatch, error):
    def fail(*_, **__):
        raise error

    trainer_in(tmp_path, max_steps=6).fit()
    before = (tmp_path / "state.pt").read_bytes()
    with monkeypatch.context() as patch, pytest.raises((OSError, MemoryError), match="state.pt"):
        patch.setattr(torch, "load", fail)
        trainer_in(tmp_path).resume()
    assert (tmp_path / "state.pt").read_bytes() == before
    trainer_in(tmp_path).resume()


# ---------------------------------------------------------------------- two processes

OTHER = """
import sys
from pathlib import Path
from transformer.training.run_folder import claim_folder
claim = claim_folder(Path(sys.argv[1]))
print("mine", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def other_process(tmp_path):
    """Another process that trains in ``tmp_path``."""
    other = subprocess.Popen(
        [sys.executable, "-c", OTHER, tmp_path],
        env=dict(os.environ, PYTHONPATH=str(ROOT)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdout.readline() == "mine\n"
    yield other
    other.kill()
    other.communicate()


def test_a_second_run_in_a_folder_is_refused_and_changes_nothing(tmp_path, other_process):
    unfinished = tmp_path / ".state.pt.1.tmp"
    unfinished.write_bytes(b"what the other process is writing")
    with pytest.raises(FolderInUseError) as caught:
        trainer_in(tmp_path).fit()
    assert re.fullmatch(
        rf"process {other_process.pid} is training in .*; wait until it ends, .*", str(caught.value)
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == [LOCK, unfinished.name]
    # A kill releases the folder.
    other_process.kill()
    other_process.wait()
    assert trainer_in(tmp_path, max_steps=1).fit() is True


def test_a_second_trainer_of_this_process_is_refused_until_the_first_is_done(tmp_path):
    first, second = trainer_in(tmp_path, max_steps=4), trainer_in(tmp_path, max_steps=4)
    refused = pytest.raises(FolderInUseError, match="another Trainer of this process has claimed")
    first.resume()
    with refused:
        second.fit()

    def start_another():
        first.release()  # does nothing now
        with refused:
            second.fit()

    at_step(first, 2, start_another)
    assert first.fit() and first.step == 4
    assert second.fit() and second.step == 4  # that of the first
    first.resume()
    first.release()
    assert second.fit() and first.fit()  # any number of times
