"""Kill -9 in real processes: nothing that was saved is lost, and the end is the same.

As a script, this trains in children that kill themselves at a given call.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tiny_training import assert_equal, at_step, make_pairs, make_trainer, weights_of

from transformer.saving import hub
from transformer.training.checkpoint import load_state, load_weights
from transformer.training.curve import read_curve

ROOT = Path(__file__).parents[2]

# Accumulation makes steps reach from one epoch into the next.
RUN = dict(max_steps=20, save_every=5, accumulate=3, validate_every=7, keep_last=3)

# Which call of which function is the last, and the step from which the run then resumes.
MOMENTS = {
    "half of the weights written": ((hub, "save_file", 3), 5),
    "half of the state written": ((torch, "save", 2), 5),
    "before the curve is renamed": ((os, "replace", 1, "curve.jsonl"), 0),
    "before the first state is renamed": ((os, "replace", 1, "state.pt"), 0),
    "before the second weights are renamed": ((os, "replace", 1, "step-00000010.safetensors"), 5),
    "before the former state is renamed": ((os, "replace", 1, "former-state.pt"), 5),
    "before the second state is renamed": ((os, "replace", 2, "state.pt"), 5),
    "between two checkpoints": (13, 10),
}

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork"),
    pytest.mark.usefixtures("unchecked"),
]


def trainer_in(folder: Path):
    return make_trainer(folder, validation=make_pairs(10, seed=1), **RUN)


def die_at(owner: object, name: str, number: int, target: str = "") -> None:
    """Kill this process at a call of a function, a writing one after half of its file.

    With ``target``, only calls count whose second argument is a path with that name.
    """
    function, calls = getattr(owner, name), 0

    def counted(*arguments, **options):
        nonlocal calls
        calls += not target or Path(arguments[1]).name == target
        if calls == number:
            if name.startswith("save"):
                function(*arguments, **options)
                path = arguments[1]
                if not isinstance(path, Path):
                    path.flush()
                    path = path.name
                os.truncate(path, os.path.getsize(path) // 2)
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **options)

    setattr(owner, name, counted)


def die_after_writing(trainer) -> None:
    """Kill this process once all that it has saved so far is written."""
    list(trainer.writer.finished(wait_for_all=True))
    os.kill(os.getpid(), signal.SIGKILL)


def killed_run(folder: Path, last_call: tuple | int) -> None:
    pid = os.fork()
    if not pid:
        try:
            if isinstance(last_call, tuple):
                die_at(*last_call)
            trainer = trainer_in(folder)
            if isinstance(last_call, int):
                at_step(trainer, last_call, lambda: die_after_writing(trainer))
            trainer.fit()
        finally:
            os._exit(1)
    status = os.waitpid(pid, 0)[1]
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL, folder.name


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("killed")
    environment = dict(os.environ, PYTHONPATH=str(ROOT), ACCELERATE_USE_CPU="true")
    done = subprocess.run(
        [sys.executable, __file__, folder],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def reference(unchecked, tmp_path_factory):
    trainer = trainer_in(tmp_path_factory.mktemp("reference"))
    assert trainer.fit() is True
    return trainer


def numbers(folder: Path) -> list[tuple]:
    lines = read_curve(folder / "curve.jsonl")
    return [(line["step"], line.get("loss"), line.get("perplexity")) for line in lines]


@pytest.mark.filterwarnings("ignore:.* holds no state.pt")  # killed before the first was written
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_killed_run_resumes_and_ends_in_the_same_weights(runs, reference, moment):
    folder, step = runs / moment, MOMENTS[moment][1]
    assert (folder / "state.pt").exists() == (step > 0)
    if step:
        assert load_state(folder / "state.pt")["progress"]["step"] == step
    for weights in (folder / "checkpoints").glob("*.safetensors"):
        load_weights(weights)  # all are complete
    trainer = trainer_in(folder)
    trainer.resume()
    assert trainer.step == step
    assert trainer.fit() is True
    assert_equal(weights_of(reference.model), weights_of(trainer.model))
    files = sorted((reference.folder / "checkpoints").iterdir())
    assert [p.name for p in sorted((folder / "checkpoints").iterdir())] == [p.name for p in files]
    for file in files:
        assert (folder / "checkpoints" / file.name).read_bytes() == file.read_bytes()
    assert numbers(folder) == numbers(reference.folder)
    assert not list(folder.rglob("*.tmp"))


if __name__ == "__main__":
    import torch._dynamo  # once, and not in each child

    torch.set_num_threads(1)
    for moment, (last_call, _) in MOMENTS.items():
        killed_run(Path(sys.argv[1]) / moment, last_call)
