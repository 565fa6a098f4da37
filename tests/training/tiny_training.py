"""Training runs of a few seconds in all, for the tests; as a script, runs that get killed."""

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from transformer.data.batching import EncodedPairs, Sentences, TokenBatches
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer.training import checkpoint
from transformer.training.config import TrainingConfig
from transformer.training.trainer import Trainer

VOCAB_SIZE = 50


def make_pairs(count: int = 45, seed: int = 0) -> EncodedPairs:
    """Sentences of 1 to 7 random tokens and <eos>."""
    rng = np.random.default_rng(seed)

    def sentences() -> Sentences:
        rows = [[*rng.integers(3, VOCAB_SIZE, rng.integers(1, 8)), 2] for _ in range(count)]
        offsets = np.cumsum([0, *map(len, rows)], dtype=np.int64)
        return Sentences(np.concatenate(rows).astype(np.int32), offsets)

    return EncodedPairs(sentences(), sentences())


def make_model(seed: int = 0, **changes) -> Transformer:
    torch.manual_seed(seed)
    small = dict(d_model=16, d_ff=24, num_heads=2, num_layers=1, dropout=0.2)
    return Transformer(TransformerConfig(VOCAB_SIZE, **small | changes))


def make_trainer(
    folder: Path | str,
    model: Transformer | None = None,
    pairs: EncodedPairs | None = None,
    validation: EncodedPairs | None = None,
    score: Callable | None = None,
    **changes,
) -> Trainer:
    """A trainer whose epochs have about 10 batches."""
    small = dict(
        max_steps=16, batch_tokens=40, warmup_steps=8, log_every=1, validate_every=6, save_every=4
    )
    config = TrainingConfig(**small | changes)
    batches = TokenBatches(pairs or make_pairs(), config.batch_tokens, config.seed)
    return Trainer(
        model or make_model(),
        batches,
        config,
        folder,
        validation=TokenBatches(validation, 30) if validation else None,
        score=score,
        progress=False,
    )


def at_step(trainer: Trainer, step: int, action: Callable[[], None], after: bool = False) -> None:
    """Do something just before or just after the optimiser takes a step, counted from 1."""
    optimizer = trainer.optimizer.optimizer
    register = optimizer.register_step_post_hook if after else optimizer.register_step_pre_hook
    register(lambda *_: action() if trainer.step + 1 == step else None)


def weights_of(model: torch.nn.Module) -> dict[str, Tensor]:
    return {name: weight.detach().clone() for name, weight in model.state_dict().items()}


def gradients_of(model: torch.nn.Module) -> dict[str, Tensor]:
    return {name: weight.grad.clone() for name, weight in model.named_parameters()}


# ---------------------------------------------------------------------- runs that get killed

# A few, to be quick; the scheduled workflow asks for twenty.
KILLS = int(os.environ.get("TRANSFORMER_KILLS", "3"))

# Accumulation makes steps reach from one epoch into the next.
LONG = dict(max_steps=12 * max(KILLS, 5), save_every=5, accumulate=3, validate_every=7, keep_last=3)


def long_trainer(folder: Path) -> Trainer:
    return make_trainer(folder, validation=make_pairs(10, seed=1), **LONG)


def in_child(run: Callable[[], None]) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        run()
    except BaseException as error:
        print(repr(error), file=sys.stderr)
        os._exit(1)
    os._exit(0)


def wait_for(happened: Callable[[], bool], pid: int) -> bool:
    """Wait; return False if the child ended before it happened."""
    while not happened():
        if os.waitpid(pid, os.WNOHANG) != (0, 0):
            return False
        time.sleep(0.001)
    return True


def kill_at_random_moments(folder: Path, times: int) -> list[str]:
    """Kill -9 a run again and again, each time after it got somewhere; then let it finish.

    Every other kill is in the middle of writing a checkpoint, at a random one of its operations.

    Returns:
        Where each kill met the run.
    """
    folder.mkdir(parents=True)
    curve, rng, met = folder / "curve.jsonl", random.Random(times), []
    curve.touch()

    def lines() -> int:
        return curve.read_bytes().count(b"\n")

    for number in range(times):
        before, operation = curve.stat().st_mtime_ns, rng.randint(1, 18) if number % 2 else 0
        pid = in_child(lambda: (die_writing(operation), long_trainer(folder).fit()))  # noqa: B023
        if not operation:  # the first change is the curve's rewinding, when the run starts
            running = wait_for(lambda: curve.stat().st_mtime_ns != before, pid)  # noqa: B023
            goal = lines() + rng.randint(0, 9)
            if running and wait_for(lambda: lines() >= goal, pid):  # noqa: B023
                time.sleep(rng.uniform(0, 0.02))
                os.kill(pid, signal.SIGKILL)
        killed = os.WIFSIGNALED(os.waitpid(pid, 0)[1])
        where = f"operation {operation}" if operation else "between two"
        met.append(f"{where}, after line {lines()}" if killed else "it had ended")
    status = os.waitpid(in_child(lambda: long_trainer(folder).fit()), 0)[1]
    assert status == 0, f"the last sitting ended with {status}"
    return met


def die_writing(at: int) -> None:
    """Have this process killed in its so-manieth operation of writing files; 0 is never.

    Of a file that is being written, half is there; what is renamed has its old name still.
    """
    count = 0

    def counted(owner: object, name: str) -> None:
        operation = getattr(owner, name)

        def run(*arguments, **options):
            nonlocal count
            count += 1
            if count == at:
                if name in ("save", "save_file"):
                    operation(*arguments, **options)
                    file = arguments[1]
                    path = file if isinstance(file, Path) else Path(file.name)
                    if path is not file:
                        file.flush()
                    os.truncate(path, path.stat().st_size // 2)
                os.kill(os.getpid(), signal.SIGKILL)
            return operation(*arguments, **options)

        setattr(owner, name, run)

    for owner, name in ((torch, "save"), (checkpoint, "save_file")):
        counted(owner, name)
    for name in ("fsync", "link", "replace", "unlink"):
        counted(os, name)


def kill_while_writing(folder: Path, writer: str) -> None:
    """Kill -9 a run when half of its second checkpoint is written, to state or weights."""
    marker = folder.with_suffix(".marker")

    def run() -> None:
        trainer = long_trainer(folder)
        owner = torch if writer == "save" else checkpoint
        write = getattr(owner, writer)

        def write_half(data, file, **options):
            write(data, file, **options)
            if trainer.step < 10:
                return
            path = file
            if not isinstance(file, Path):
                file.flush()
                path = Path(file.name)
            os.truncate(path, path.stat().st_size // 2)
            marker.touch()
            time.sleep(600)

        setattr(owner, writer, write_half)
        trainer.fit()

    pid = in_child(run)
    assert wait_for(marker.exists, pid), "the run ended before it was killed"
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


if __name__ == "__main__":
    torch.set_num_threads(1)
    root = Path(sys.argv[1])
    met = kill_at_random_moments(root / "random", times=KILLS)
    kill_while_writing(root / "state", "save")
    kill_while_writing(root / "weights", "save_file")
    print(json.dumps(met))
