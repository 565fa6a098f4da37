"""What machines and people do to a run: each fault is told, and nothing is lost.

A hook sees every file that Python opens, renames, links or removes in the folder of a run. There
the process is killed, or the call fails as on a full or a closed disk. That meets every moment
between two changes of the folder; a kill in the middle of one is in test_killed.py.
"""

import errno
import json
import os
import random
import re
import signal
import subprocess
import sys
import warnings
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch
from tiny_training import at_step, in_child, make_pairs, make_trainer, weights_of

from transformer.training import run_folder
from transformer.training.checkpoint import (
    load_state,
    load_weights,
    save_state,
    save_weights,
)
from transformer.training.curve import Curve, read_curve
from transformer.training.run_folder import FORMER_STATE, LOCK, FolderInUseError, claim_folder

ROOT = Path(__file__).parents[2]
RUN = dict(max_steps=12, save_every=3, validate_every=4, keep_last=2, accumulate=2)


def trainer_in(folder, **changes):
    return make_trainer(folder, validation=make_pairs(10, seed=1), **RUN | changes)


# ---------------------------------------------------------------------- the hook

CALLS = {"os.rename", "os.link", "os.remove", "os.mkdir", "os.truncate"}
_hook = {"folder": None, "act": None}


def _watch(event, arguments):
    if _hook["act"] is None or event not in CALLS | {"open"}:
        return
    place = arguments[0]
    if not isinstance(place, str | Path) or not str(place).startswith(_hook["folder"]):
        return
    writes = event != "open" or (arguments[2] or 0) & (os.O_WRONLY | os.O_RDWR)
    _hook["act"](event, str(place), bool(writes))


@contextmanager
def watching(folder, act):
    """Call ``act(event, path, writes)`` before every call on a file of ``folder``."""
    if "added" not in _hook:
        sys.addaudithook(_watch)  # it can never be taken away
        _hook["added"] = True
    _hook.update(folder=str(folder), act=act)
    try:
        yield
    finally:
        _hook["act"] = None


def calls_of_a_run(folder):
    seen = []
    with watching(folder, lambda event, path, writes: seen.append((event, path))):
        trainer = trainer_in(folder)
        assert trainer.fit()
    return seen, trainer


def at_call(number, action, only_writes=False):
    counter = iter(range(1_000_000))

    def act(event, path, writes):
        if (writes or not only_writes) and next(counter) == number:
            action(path)

    return act


# ---------------------------------------------------------------------- kills


def kill_at_twenty_moments(root):
    """In children of this process, as a script: each run is killed once, then it goes on."""
    report = root / "calls.json"
    trainer_in(root / "warm")  # imports what each child would import anew

    def whole():
        seen, _ = calls_of_a_run(root / "whole")
        report.write_text(json.dumps([[event, Path(path).name] for event, path in seen]))

    assert os.waitpid(in_child(whole), 0)[1] == 0
    calls = json.loads(report.read_text())
    rng, moments = random.Random(8), []
    for event, count in {"os.rename": 6, "os.link": 2, "os.remove": 4, "open": 8}.items():
        moments += rng.sample([i for i, call in enumerate(calls) if call[0] == event], count)
    for i, moment in enumerate(moments):
        folder = root / f"killed-{i:02d}"

        def run(folder=folder, moment=moment):
            kill = lambda path: os.kill(os.getpid(), signal.SIGKILL)  # noqa: E731
            with watching(folder, at_call(moment, kill)):
                trainer_in(folder).fit()

        status = os.waitpid(in_child(run), 0)[1]
        assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, calls[moment]
        status = os.waitpid(in_child(lambda f=folder: trainer_in(f).fit()), 0)[1]
        assert status == 0, calls[moment]
    print(json.dumps([calls[moment] for moment in moments]))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_at_any_of_twenty_moments_it_ends_in_the_same_weights(tmp_path):
    done = subprocess.run(
        [sys.executable, __file__, tmp_path],
        env=dict(os.environ, PYTHONPATH=str(ROOT), ACCELERATE_USE_CPU="true"),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    moments = json.loads(done.stdout.splitlines()[-1])
    assert len(moments) == 20
    assert any("state.pt" in name for _, name in moments)
    assert any("curve.jsonl" in name for _, name in moments)
    expected = load_state(tmp_path / "whole/state.pt")
    lines = curve_of(tmp_path / "whole")
    for i, moment in enumerate(moments):
        folder = tmp_path / f"killed-{i:02d}"
        state = load_state(folder / "state.pt")
        assert state["progress"]["step"] == RUN["max_steps"]
        for name, weight in expected["model"].items():
            assert torch.equal(weight, state["model"][name]), (moment, name)
        for file in (tmp_path / "whole/checkpoints").iterdir():
            assert (folder / "checkpoints" / file.name).read_bytes() == file.read_bytes(), moment
        assert curve_of(folder) == lines, moment
        assert not list(folder.rglob("*.tmp")), moment


def curve_of(folder):
    lines = read_curve(Path(folder) / "curve.jsonl")
    return [(line["step"], line.get("loss"), line.get("perplexity")) for line in lines]


# ---------------------------------------------------------------------- disks that refuse


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return calls_of_a_run(tmp_path_factory.mktemp("undisturbed"))


def test_a_disk_that_fills_up_at_any_call_ends_the_run_in_one_line(tmp_path, undisturbed):
    calls, reference = undisturbed
    ends = 0
    for number in random.Random(3).sample(range(len(calls)), 30):
        folder = tmp_path / str(number)

        def fill(path):
            raise OSError(errno.ENOSPC, "No space left on device", path)

        try:
            with watching(folder, at_call(number, fill)):
                finished = trainer_in(folder).fit()
        except OSError as error:
            ends += 1
            assert not finished_by(folder)
            if "curve" in calls[number][1] or calls[number][0] == "os.rename":
                assert re.fullmatch(r"cannot write .*; make room and try again", str(error))
        else:
            assert finished
        again = trainer_in(folder)
        assert again.fit() is True
        for name, weight in weights_of(reference.model).items():
            assert torch.equal(weight, again.model.state_dict()[name]), (calls[number], name)
        assert curve_of(folder) == curve_of(reference.folder), calls[number]
    assert ends > 15


def finished_by(folder):
    file = folder / "state.pt"
    return file.is_file() and load_state(file)["progress"]["step"] == RUN["max_steps"]


@pytest.mark.parametrize("number, says", [(errno.EROFS, "Read-only"), (errno.EACCES, "Permission")])
def test_a_folder_that_cannot_be_written(tmp_path, number, says):
    def refuse(event, path, writes):
        if writes:
            raise OSError(number, os.strerror(number), path)

    with watching(tmp_path / "run", refuse), pytest.raises(OSError, match=says) as caught:
        trainer_in(tmp_path / "run")
    assert str(caught.value).startswith(f"cannot write {tmp_path / 'run'}")
    assert str(caught.value).endswith("; choose another folder") and "\n" not in str(caught.value)


def test_a_disk_that_becomes_read_only_during_the_run(tmp_path, undisturbed):
    trainer = trainer_in(tmp_path)
    closed = []
    at_step(trainer, 8, lambda: closed.append(True))

    def refuse(event, path, writes):
        if writes and closed:
            raise OSError(errno.EROFS, "Read-only file system", path)

    with watching(tmp_path, refuse), pytest.raises(OSError, match="Read-only .*another folder"):
        trainer.fit()
    again = trainer_in(tmp_path)
    assert again.step == 6 and again.fit()
    assert curve_of(tmp_path) == curve_of(undisturbed[1].folder)


# ---------------------------------------------------------------------- bits that flip


def flip(path, at, bit=3):
    data = bytearray(path.read_bytes())
    data[at] ^= 1 << bit
    path.write_bytes(data)


def same(a, b):
    if isinstance(a, torch.Tensor):
        return torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


@pytest.mark.parametrize("save, load", [(save_weights, load_weights), (save_state, load_state)])
def test_no_flipped_bit_is_taken_for_data(tmp_path, save, load):
    """Every byte of the file in turn: an error, or the very same content."""
    path = tmp_path / "file"
    content = {"a": torch.linspace(-1, 1, 60), "b.c": torch.arange(6).view(2, 3).half()}
    save(content, path)
    whole, noticed = path.read_bytes(), 0
    rng = random.Random(0)
    for at in range(0, len(whole), 2 if load is load_weights else 5):
        path.write_bytes(whole)
        flip(path, at, rng.randrange(8))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert same(load(path), content), at
        except ValueError as error:
            assert str(path) in str(error) and "\n" not in str(error)
            noticed += 1
    assert noticed > 100  # wherever a number is


def test_a_flipped_bit_in_a_run_is_told_and_the_state_before_is_taken(tmp_path, undisturbed):
    trainer_in(tmp_path, max_steps=10, log_every=12).fit()
    assert load_state(tmp_path / FORMER_STATE)["progress"]["step"] == 9
    size = (tmp_path / "state.pt").stat().st_size
    flip(tmp_path / "state.pt", size // 2)
    with pytest.warns(UserWarning) as notices:
        going_on = trainer_in(tmp_path)
    (notice,) = [str(n.message) for n in notices if "state.pt" in str(n.message)]
    assert re.search(r"state\.pt is not a whole.*going on from former-state\.pt", notice)
    assert "\n" not in notice
    assert going_on.step == 9
    # The whole one has the name now, so that the next save does not keep the damaged one.
    assert load_state(tmp_path / "state.pt")["progress"]["step"] == 9
    assert going_on.fit() is True
    for name, weight in weights_of(undisturbed[1].model).items():
        assert torch.equal(weight, going_on.model.state_dict()[name]), name


def test_two_damaged_states_are_both_named_and_kept(tmp_path):
    trainer_in(tmp_path, max_steps=6).fit()
    for name in ("state.pt", FORMER_STATE):
        (tmp_path / name).write_bytes(b"PK half")
    with pytest.raises(ValueError, match=r"state\.pt is not .*former-state\.pt is not .*remove it"):
        trainer_in(tmp_path)
    assert (tmp_path / "state.pt").read_bytes() == b"PK half"


def test_a_removed_state_leaves_the_one_before_it(tmp_path):
    trainer_in(tmp_path, max_steps=6).fit()
    (tmp_path / "state.pt").unlink()
    assert trainer_in(tmp_path, max_steps=6).step == 3


def test_where_no_file_can_have_two_names_it_is_copied(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    trainer_in(tmp_path, max_steps=6).fit()
    assert load_state(tmp_path / FORMER_STATE)["progress"]["step"] == 3
    assert load_state(tmp_path / "state.pt")["progress"]["step"] == 6


def test_a_state_with_other_things_in_it_is_refused(tmp_path):
    trainer_in(tmp_path, max_steps=3).fit()
    state = load_state(tmp_path / "state.pt")
    strange = [None, [], {}, "text", torch.zeros(2), {"step": "x"}, -1]
    rng = random.Random(1)
    wrong = [{}, {"text": 1}]
    for name in state:
        for value in strange:
            # A configuration that says nothing is one of an older version.
            if name != "scaler" and not (name == "config" and isinstance(value, dict)):
                wrong.append(state | {name: value})
        if isinstance(state[name], dict) and state[name] and name not in ("config", "scaler"):
            key = rng.choice(sorted(state[name]))
            wrong.append(state | {name: {k: v for k, v in state[name].items() if k != key}})
    for content in wrong:
        save_state(content, tmp_path / "state.pt")
        with pytest.raises(ValueError, match="state.pt is not|holds a run of") as caught:
            trainer_in(tmp_path)
        assert "\n" not in str(caught.value)


def test_an_archive_that_unpacks_to_more_than_it_has_is_refused(tmp_path):
    import zipfile

    path = tmp_path / "state.pt"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(50_000_000))
    assert path.stat().st_size < 100_000
    with pytest.raises(ValueError, match="claims to hold more"):
        load_state(path)


def test_weights_without_a_checksum_are_read(tmp_path):
    from safetensors.torch import save_file

    save_file({"a": torch.ones(3)}, tmp_path / "w")
    assert load_weights(tmp_path / "w")["a"].tolist() == [1, 1, 1]


def test_a_damaged_line_of_the_curve_takes_no_other_with_it(tmp_path):
    lines = [json.dumps(dict(step=i, loss=i / 2)).encode() for i in range(5)]
    deep = b"[" * 100_000
    strange = [b'{"step": 1, "lo\xff', b"[1]", b"7", b'{"loss": 1}', b'{"step": "x"}', b"", deep]
    for damage in strange:
        path = tmp_path / "curve.jsonl"
        path.write_bytes(b"\n".join([*lines[:2], damage, *lines[3:]]) + b'\n{"step": 9')
        assert [line["step"] for line in read_curve(path)] == [0, 1, 3, 4]
        Curve(tmp_path, step=3).write(4, loss=2.0)
        assert [line["step"] for line in read_curve(path)] == [0, 1, 3, 4]


# ---------------------------------------------------------------------- two runs, and the clock

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
    other.wait()


@pytest.mark.skipif(run_folder.fcntl is None, reason="needs locks")
def test_a_second_run_in_a_folder_is_refused_and_changes_nothing(tmp_path, other_process):
    unfinished = tmp_path / ".state.pt.1.tmp"
    unfinished.write_bytes(b"what the other is writing")
    with pytest.raises(FolderInUseError) as caught:
        trainer_in(tmp_path)
    assert re.fullmatch(
        rf"process {other_process.pid} is training in .*; wait until it ends, .*", str(caught.value)
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == [LOCK, unfinished.name]
    # However the other ends, nothing of its claim is left.
    other_process.kill()
    other_process.wait()
    assert trainer_in(tmp_path, max_steps=1).fit() is True


@pytest.mark.skipif(run_folder.fcntl is None, reason="needs locks")
def test_a_run_that_has_ended_leaves_its_folder_to_others(tmp_path, request):
    mine = trainer_in(tmp_path, max_steps=1)
    mine.fit()
    request.getfixturevalue("other_process")
    with pytest.raises(FolderInUseError):
        mine.fit()


def test_one_process_may_use_its_folder_again(tmp_path):
    first = claim_folder(tmp_path)
    assert claim_folder(tmp_path / "." / "") is first


def test_a_file_system_without_locks_goes_without(tmp_path, monkeypatch):
    class NoLocks:
        LOCK_EX = LOCK_NB = 0

        @staticmethod
        def lockf(*_):
            raise OSError(errno.ENOLCK, "No locks available")

    for locks in (NoLocks, None):
        monkeypatch.setattr(run_folder, "fcntl", locks)
        assert trainer_in(tmp_path / str(locks), max_steps=1).fit() is True


def test_a_clock_that_stands_still_or_goes_backwards_changes_nothing(
    tmp_path, undisturbed, monkeypatch
):
    reference = undisturbed[1]
    # Steady by contract, but on some machines so coarse that it seems to stand.
    monkeypatch.setattr("transformer.training.trainer.time.perf_counter", lambda: 5.0)
    trainer_in(tmp_path, max_steps=7, log_every=12).fit()
    # Files from the future, the oldest checkpoint the latest: only their names count.
    for age, path in enumerate(sorted(tmp_path.rglob("*.*"))):
        os.utime(path, (4e9 - age, 4e9 - age))
    monkeypatch.setattr("time.time", lambda: 1.0)
    again = trainer_in(tmp_path)
    assert again.step == 7 and again.fit() is True
    for name, weight in weights_of(reference.model).items():
        assert torch.equal(weight, again.model.state_dict()[name]), name
    assert [p.name for p in again.checkpoints()] == [p.name for p in reference.checkpoints()]
    assert all(line["minutes"] >= 0 for line in read_curve(tmp_path / "curve.jsonl"))


if __name__ == "__main__":
    torch.set_num_threads(1)
    kill_at_twenty_moments(Path(sys.argv[1]))
