"""Two processes are one: same gradients, same weights, and they stop together."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tiny_training import gradients_of, make_model, make_pairs, make_trainer, weights_of

from transformer.training.curve import read_curve

ROOT = Path(__file__).parents[2]
RUN = dict(max_steps=8, adam_eps=1e-3)


def train(folder: Path, accumulate: int, dropout: float = 0.0, stop: int | None = None) -> bool:
    """One sitting of one process; each dumps its gradients, the main one its weights."""
    trainer = make_trainer(
        folder,
        # Different seeds: the processes have to agree on the first one's weights.
        make_model(seed=int(os.environ.get("RANK", 0)), dropout=dropout),
        validation=make_pairs(10, 1),
        accumulate=accumulate,
        **RUN,
    )
    rank, gradients = trainer.accelerator.process_index, []

    def look(*_):
        gradients.append(gradients_of(trainer.model))
        if trainer.step + 1 == stop and rank == 1:
            os.kill(os.getpid(), 15)

    trainer.optimizer.optimizer.register_step_pre_hook(look)
    done = trainer.fit()
    torch.save([gradients, weights_of(trainer.model)], folder / f"process-{rank}.pt")
    return done


def main(folder: Path) -> None:
    torch.set_num_threads(1)
    assert train(folder / "equal", accumulate=2)
    assert train(folder / "dropout", accumulate=1, dropout=0.2)
    # A signal to the second process alone has to stop both.
    assert not train(folder / "stopped", accumulate=1, dropout=0.2, stop=3)
    assert train(folder / "stopped", accumulate=1, dropout=0.2)
    torch.distributed.destroy_process_group()


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("needs gloo")
    folder = tmp_path_factory.mktemp("two")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--master-addr=127.0.0.1"]
    path = os.pathsep.join([str(ROOT), str(Path(__file__).parent)])
    done = subprocess.run(
        [sys.executable, *command, f"--master-port={port}", __file__, folder],
        env=dict(os.environ, PYTHONPATH=path, ACCELERATE_USE_CPU="true", OMP_NUM_THREADS="1"),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return folder


def load(path: Path) -> list:
    return torch.load(path, weights_only=True)


def assert_close(a: dict, b: dict, **tolerance):
    assert a.keys() == b.keys()
    for name in a:
        torch.testing.assert_close(a[name], b[name], **tolerance)


def test_two_processes_have_the_gradients_and_weights_of_one(two, tmp_path):
    train(tmp_path, accumulate=4)  # two processes that accumulate 2 batches each
    gradients, weights = load(tmp_path / "process-0.pt")
    for rank in range(2):
        theirs = load(two / f"equal/process-{rank}.pt")
        assert len(theirs[0]) == len(gradients) == 8
        for a, b in zip(gradients, theirs[0], strict=True):
            assert max(g.abs().max() for g in a.values()) > 1e-3
            assert_close(a, b, rtol=1e-3, atol=1e-6)
        assert_close(weights, theirs[1], rtol=1e-3, atol=1e-5)
    one, both = read_curve(tmp_path / "curve.jsonl"), read_curve(two / "equal/curve.jsonl")
    assert [line["step"] for line in one] == [line["step"] for line in both]
    for a, b in zip(one, both, strict=True):
        for name in ("loss", "perplexity"):
            assert (name in a) == (name in b)
            assert a.get(name, 0) == pytest.approx(b.get(name, 0), rel=1e-4)


def test_both_processes_hold_the_same_weights_but_drop_different_units(two):
    (first, weights), (second, others) = (load(two / f"dropout/process-{r}.pt") for r in range(2))
    assert_close(weights, others, rtol=0, atol=0)
    assert_close(first[-1], second[-1], rtol=0, atol=0)


def test_a_signal_to_one_process_stops_both_and_the_run_goes_on_unchanged(two):
    straight, stopped = (load(two / f"{run}/process-0.pt") for run in ("dropout", "stopped"))
    assert len(straight[0]) == 8 and len(stopped[0]) == 5  # of the second sitting
    assert_close(straight[1], stopped[1], rtol=0, atol=0)
    losses = [
        [(line["step"], line.get("loss")) for line in read_curve(two / run / "curve.jsonl")]
        for run in ("dropout", "stopped")
    ]
    assert losses[0] == losses[1]


if __name__ == "__main__":
    main(Path(sys.argv[1]))
