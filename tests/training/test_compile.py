"""Compiled layers process batches of new shapes without compiling again.

Counting runs in a process of its own: the shape checks of the tests would be compiled, too.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tiny_training import VOCAB_SIZE, make_model, make_trainer

from transformer.data.batching import Batch

ROOT = Path(__file__).parents[2]
# Sentences, source length, target length. In the first, all sizes are equal; every other one is
# half padding.
FIRST = [(6, 6, 6), (5, 8, 9), (4, 7, 9), (6, 12, 7)]
LATER = [(9, 3, 5), (5, 5, 8), (3, 4, 17), (7, 19, 2), (4, 6, 6)]


def batch_of(sentences: int, source: int, target: int, padded: bool) -> Batch:
    """Make random tokens; one row of each side has the full length."""
    rows = torch.arange(sentences)[:, None]

    def side(length: int) -> tuple[torch.Tensor, int]:
        shorter = rows % 2 * (length // 2 if padded else 0)
        real = torch.arange(length) < length - shorter
        return torch.randint(3, VOCAB_SIZE, real.shape) * real, int(real.sum())

    (x, source_tokens), (y, target_tokens) = side(source), side(target)
    shown = torch.cat([torch.ones_like(y[:, :1]), y[:, :-1]], dim=1) * (y != 0)
    return Batch(x, shown, y, source_tokens, target_tokens)


def train(folder: Path, **changes) -> dict[str, list]:
    """Take a step on each shape; return its loss and the number of graphs after it."""
    from torch._dynamo.utils import counters

    trainer = make_trainer(folder, make_model(num_layers=2, dropout=0.0), **changes)
    found = dict(loss=[], graphs=[])
    for number, shape in enumerate(FIRST + LATER):
        batch = batch_of(*shape, padded=number % 2 == 1)
        found["loss"].append(trainer._train_step([batch], batch.num_target_tokens).item())
        found["graphs"].append(counters["stats"]["unique_graphs"])
        trainer.step += 1
    found["breaks"] = list(counters["graph_break"])
    return found


def measure(folder: Path, device: str) -> dict[str, dict]:
    if device == "cpu":  # the C++ compiler takes half a minute, and does not matter here
        compile_layer = torch.nn.Module.compile
        torch.nn.Module.compile = lambda layer, **how: compile_layer(
            layer, **dict(backend="aot_eager") | how
        )
    return {
        name: train(folder / name, compile=compiled)
        for name, compiled in (("plain", False), ("compiled", True))
    }


@pytest.mark.parametrize(
    "device",
    [
        "cpu",
        pytest.param(
            "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
        ),
    ],
)
def test_new_shapes_compile_nothing_new(tmp_path, device):
    path = os.pathsep.join([str(ROOT), str(Path(__file__).parent)])
    environment = dict(PYTHONPATH=path, OMP_NUM_THREADS="1")
    environment["ACCELERATE_USE_CPU"] = str(device == "cpu").lower()
    subprocess.run(
        [sys.executable, __file__, str(tmp_path), device],
        env=os.environ | environment, check=True, timeout=300,
    )  # fmt: skip
    found = json.loads((tmp_path / "found.json").read_text())
    plain, compiled = found["plain"], found["compiled"]
    assert plain["graphs"] == [0] * len(FIRST + LATER)
    warm, *later = compiled["graphs"][len(FIRST) - 1 :]
    assert compiled["graphs"][0] >= 2 and later == [warm] * len(LATER)
    # Equal sizes are treated as one until they differ. Layers of a kind share their graphs since
    # PyTorch 2.5, so that its limit of eight graphs is not reached.
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    assert warm <= (8 if version >= (2, 5) else 16)
    assert compiled["breaks"] == []
    assert compiled["loss"] == pytest.approx(plain["loss"], rel=1e-4)


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    (folder / "found.json").write_text(json.dumps(measure(folder, sys.argv[2])))
