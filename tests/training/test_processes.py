"""Two processes compute what one does, with whole weights or with shards of them."""

import math
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tiny_training import (
    assert_close,
    assert_equal,
    at_step,
    gradients_of,
    make_model,
    make_pairs,
    make_trainer,
    weights_of,
)

from transformer.training.callbacks import Callback, EarlyStopping
from transformer.training.checkpoint import load_state, load_weights
from transformer.training.curve import read_curve
from transformer.training.run_folder import require_same
from transformer.training.stopping import NonFiniteLossError

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.usefixtures("unchecked")
RUN = dict(max_steps=8, adam_eps=1e-3)
CLIP = 0.1
# An own optimizer; what only the built-in one reads is at its default.
SGD = dict(
    own=dict(optimizer=lambda parameters: torch.optim.SGD(parameters, 0.05, momentum=0.9)),
    **dict(warmup_steps=4000, adam_eps=1e-9, max_steps=3),
)


class Told(Callback):
    """Write down what this process is told."""

    def __init__(self):
        self.told = []

    def on_log(self, trainer, numbers):
        self.told.append([trainer.step, numbers["loss"], numbers["tokens_per_second"]])

    def on_validation(self, trainer, numbers):
        self.told.append([trainer.step, numbers["perplexity"]])

    def state_dict(self):
        return dict(told=self.told)

    def load_state_dict(self, state):
        self.told = state["told"]


def train_own(folder: Path, **changes) -> bool:
    """Train with an own optimizer, a scheduler, early stopping, and a callback."""
    model = make_model(seed=int(os.environ.get("RANK", 0)))
    adam = torch.optim.AdamW(model.parameters(), lr=0.1)
    told = Told()
    own = dict(
        optimizer=adam,
        schedule=torch.optim.lr_scheduler.OneCycleLR(adam, max_lr=0.1, total_steps=40),
        callbacks=[EarlyStopping(patience=3), told],
    )
    run = dict(max_steps=40, validate_every=2, warmup_steps=4000, adam_eps=1e-9)
    done = train(folder, accumulate=1, model=model, own=own, **run | changes)
    rank = os.environ.get("RANK", 0)
    torch.save(told.told, folder / f"told-{rank}.pt")
    return done


def train(
    folder: Path,
    accumulate: int,
    dropout: float = 0.0,
    stop: int | None = None,
    model: torch.nn.Module | None = None,
    **changes,
) -> bool:
    """One sitting of one process; each dumps its gradients, the main one its weights."""
    trainer = make_trainer(
        folder,
        # Different seeds: the processes have to agree on the first one's weights.
        model or make_model(seed=int(os.environ.get("RANK", 0)), dropout=dropout),
        validation=make_pairs(10, 1),
        accumulate=accumulate,
        **RUN | changes,
    )
    rank, gradients = trainer.accelerator.process_index, []

    def look(*_):
        if not trainer.sharded:
            gradients.append(gradients_of(trainer.model))
        if trainer.step + 1 == stop and rank == 1:
            os.kill(os.getpid(), 15)

    trainer.optimizer.register_step_pre_hook(look)
    done = trainer.fit()
    torch.save([gradients, weights_of(trainer.model)], folder / f"process-{rank}.pt")
    return done


def whole(folder: Path) -> None:
    assert train(folder / "equal", accumulate=2)
    assert train(folder / "dropout", accumulate=1, dropout=0.2)
    # A signal to the second process alone has to stop both.
    assert not train(folder / "stopped", accumulate=1, dropout=0.2, stop=3)
    assert train(folder / "stopped", accumulate=1, dropout=0.2)
    # Sentences longer than the prepared positions: each process's table grows on its own.
    assert train(folder / "growing", accumulate=1, max_steps=4, model=make_model(max_length=1))
    assert train_own(folder / "own")
    assert not train_own(folder / "own-stopped", stop=3)
    assert train_own(folder / "own-stopped")


def in_shards(folder: Path) -> None:
    assert train(folder / "sharded", accumulate=2, shard=True, clip_norm=CLIP)
    assert train(folder / "own-sharded", accumulate=2, shard=True, **SGD)
    # A run of one process resumes in two, then in two with sharded weights.
    assert train(folder / "crossing", accumulate=2, max_steps=4)
    assert train(folder / "crossing", accumulate=2, max_steps=6, shard=True)
    rank = int(os.environ["RANK"])
    with pytest.raises(ValueError, match="process 1 sees none; all machines .* one shared folder"):
        train(folder / ("sharded" if rank == 0 else "not-shared"), accumulate=2)
    # Not a number in the second process's share alone: both find out.
    trainer = make_trainer(folder / "infinite", shard=True)
    weight = trainer.trained.encoder[0].feed_forward.hidden.weight

    @torch.no_grad()
    def spoil():
        weight.to_local().fill_(math.nan if rank else 0.0)

    at_step(trainer, 2, spoil, after=True)
    with pytest.raises(NonFiniteLossError, match="weights are not after step 2"):
        trainer.fit()


def launch(folder: Path) -> None:
    """Run this file in two processes, one each of two machines, as torchrun starts them."""
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("needs gloo")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    path = os.pathsep.join([str(ROOT), str(Path(__file__).parent)])
    environment = dict(PYTHONPATH=path, ACCELERATE_USE_CPU="true", OMP_NUM_THREADS="1")
    environment |= dict(MASTER_ADDR="127.0.0.1", MASTER_PORT=port, WORLD_SIZE="2")
    environment |= dict(LOCAL_RANK="0", LOCAL_WORLD_SIZE="1")
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, folder],
            env=os.environ | environment | dict(RANK=str(rank)),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        said = [process.communicate(timeout=300)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert not any(process.returncode for process in processes), "\n".join(said)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    assert train(folder / "crossing", accumulate=4, max_steps=2)
    launch(folder)
    return folder


def load(path: Path) -> list:
    return torch.load(path, weights_only=True)


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
    assert_equal(weights, others)
    assert_equal(first[-1], second[-1])


def test_a_signal_to_one_process_stops_both_and_the_run_goes_on_unchanged(two):
    straight, stopped = (load(two / f"{run}/process-0.pt") for run in ("dropout", "stopped"))
    assert len(straight[0]) == 8 and len(stopped[0]) == 5  # of the second sitting
    assert_equal(straight[1], stopped[1])
    losses = [
        [(line["step"], line.get("loss")) for line in read_curve(two / run / "curve.jsonl")]
        for run in ("dropout", "stopped")
    ]
    assert losses[0] == losses[1]


def test_the_tables_of_positions_may_differ_in_length(two):
    (_, weights), (_, others) = (load(two / f"growing/process-{rank}.pt") for rank in range(2))
    assert_equal(weights, others)


def test_a_users_own_parts_resume_and_report_the_same_in_every_process(two):
    runs = [two / "own", two / "own-stopped"]
    weights = [[load(run / f"process-{r}.pt")[1] for r in range(2)] for run in runs]
    for other in (weights[0][1], *weights[1]):
        assert_equal(weights[0][0], other)
    told = [[load(run / f"told-{r}.pt") for r in range(2)] for run in runs]
    assert told[0][0] == told[0][1] and told[1][0] == told[1][1]
    numbers = [[line[:2] for line in each[0]] for each in told]
    assert numbers[0] == numbers[1]
    last = numbers[0][-1][0]
    assert 6 <= last < 40, "early stopping was to end the run"
    for run in runs:
        state = load_state(run / "state.pt")
        assert state["progress"]["step"] == state["schedule"]["last_epoch"] == last
        assert state["callbacks"]["EarlyStopping 1"]["waited"] == 3


def test_an_own_optimizer_of_sharded_weights_ends_where_one_process_does(two, tmp_path):
    train(tmp_path, accumulate=4, **SGD)
    one, both = (load(folder / "process-0.pt")[1] for folder in (tmp_path, two / "own-sharded"))
    assert_close(one, both, rtol=1e-3, atol=1e-5)


def test_sharded_weights_end_where_one_process_does(two, tmp_path):
    train(tmp_path, accumulate=4, clip_norm=CLIP)
    one, both = load(tmp_path / "process-0.pt"), load(two / "sharded/process-0.pt")
    norms = [torch.stack([g.norm() for g in step.values()]).norm() for step in one[0]]
    assert min(norms) == pytest.approx(CLIP, rel=1e-3), "clipping was to make a difference"
    assert_close(one[1], both[1], rtol=1e-3, atol=1e-5)
    curves = [read_curve(folder / "curve.jsonl") for folder in (tmp_path, two / "sharded")]
    for a, b in zip(*curves, strict=True):
        assert a.get("perplexity", 0) == pytest.approx(b.get("perplexity", 0), rel=1e-4)
        assert a.get("loss", 0) == pytest.approx(b.get("loss", 0), rel=1e-4)
    # What is written is the same file, however many have written it.
    states = [load_state(folder / "state.pt") for folder in (tmp_path, two / "sharded")]
    (_, one), (_, both) = (torch.utils._pytree.tree_flatten(state["optimizer"]) for state in states)
    assert one == both
    best = [load_weights(f / "checkpoints/best.safetensors") for f in (tmp_path, two / "sharded")]
    assert_close(*best, rtol=1e-3, atol=1e-5)


def test_a_run_goes_on_in_another_number_of_processes(two, tmp_path):
    train(two / "crossing", accumulate=4)
    train(tmp_path, accumulate=4)
    assert_close(
        load(two / "crossing/process-0.pt")[1],
        load(tmp_path / "process-0.pt")[1],
        rtol=1e-3,
        atol=1e-5,
    )


def test_another_number_of_processes_has_to_share_a_step_equally(tmp_path):
    theirs = dict(accumulate=3, processes=2, seed=0)
    require_same(dict(accumulate=6, processes=1, seed=0), theirs, tmp_path)
    require_same(dict(accumulate=2, processes=3, seed=0), theirs, tmp_path)
    with pytest.raises(ValueError, match=r"accumulate: 3 there, 1 here, processes: 2 there, 3 h"):
        require_same(dict(accumulate=1, processes=3, seed=0), theirs, tmp_path)
    with pytest.raises(ValueError, match="takes 6 batches, which needs accumulate=2 in 3 proc"):
        require_same(dict(accumulate=3, processes=3, seed=0), theirs, tmp_path)
    with pytest.raises(ValueError, match="6 batches, which 4 processes cannot share"):
        require_same(dict(accumulate=1, processes=4, seed=0), theirs, tmp_path)
    with pytest.raises(ValueError, match=r"\(seed: 0 there, 1 here\)$"):
        require_same(dict(accumulate=2, processes=3, seed=1), theirs, tmp_path)


if __name__ == "__main__":
    torch.set_num_threads(1)
    whole(Path(sys.argv[1]))
    in_shards(Path(sys.argv[1]))
    torch.distributed.destroy_process_group()
