"""Compiled training: no graph for a new shape, and the same losses.

Counting runs in processes of their own: the shape checks of the tests would be compiled, too.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tiny_training import VOCAB_SIZE, make_model, make_trainer

from transformer import fast
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

    # A single layer on either side: every layer is traced anew.
    trainer = make_trainer(folder, make_model(dropout=0.0), **changes)
    found = dict(loss=[], graphs=[])
    for number, shape in enumerate(FIRST + LATER):
        batch = batch_of(*shape, padded=number % 2 == 1)
        found["loss"].append(trainer.train_step([batch], batch.num_target_tokens).item())
        found["graphs"].append(counters["stats"]["unique_graphs"])
        trainer.step += 1
    found["breaks"] = list(counters["graph_break"])
    return found


@pytest.mark.parametrize(
    "device, precision",
    [
        ("cpu", "fp32"),
        pytest.param(
            *("cuda", "bf16"),
            marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
        ),
    ],
)
def test_new_shapes_compile_nothing_new(tmp_path, device, precision):
    path = os.pathsep.join([str(ROOT), str(Path(__file__).parent)])
    environment = dict(PYTHONPATH=path, OMP_NUM_THREADS="1")
    environment["ACCELERATE_USE_CPU"] = str(device == "cpu").lower()
    command = [sys.executable, __file__, str(tmp_path), device, precision]
    subprocess.run(command, env=os.environ | environment, check=True, timeout=600)
    plain, compiled = json.loads((tmp_path / "found.json").read_text())
    assert plain["graphs"] == [0] * len(FIRST + LATER)
    # The model and the loss; equal sizes are treated as one until they differ.
    warm, *later = compiled["graphs"][len(FIRST) - 1 :]
    assert 2 <= compiled["graphs"][0] <= warm <= 6 and later == [warm] * len(LATER)
    assert compiled["breaks"] == []
    tolerance = 1e-4 if precision == "fp32" else 0.02
    assert compiled["loss"] == pytest.approx(plain["loss"], rel=tolerance)


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder, device, precision = sys.argv[1:]
    if device == "cpu":  # a C++ compiler takes minutes, and changes no count
        compile_function = torch.compile
        torch.compile = lambda function, **how: compile_function(
            function, **dict(backend="aot_eager") | how
        )
    runs = (
        train(Path(folder) / str(compiled), compile=compiled, precision=precision)
        for compiled in (False, True)
    )
    (Path(folder) / "found.json").write_text(json.dumps([*runs]))
    # The fast classes, which a compiled run does not use, break no graph either.
    model, batch = make_model(dropout=0.0).train(), batch_of(*FIRST[1], padded=True)
    inputs = batch.source, batch.target_input
    expected = model(*inputs)
    fast.enable(model)
    whole = torch.compile(model, backend="eager", fullgraph=True)
    torch.testing.assert_close(whole(*inputs), expected)
