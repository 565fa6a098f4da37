"""Compiled training: no graph for a new shape, few passes over the logits, the same losses.

Counting runs in processes of their own: the shape checks of the tests would be compiled, too.
"""

import json
import os
import subprocess
import sys
from contextlib import AbstractContextManager, nullcontext
from itertools import islice
from pathlib import Path

import pytest
import torch
from tiny_training import VOCAB_SIZE, make_model, make_pairs, make_trainer

from transformer.data.batching import Batch, TokenBatches
from transformer.fast.device import missing_for_compiling
from transformer.inference.decoding import beam_search, greedy_search
from transformer.recipes.architectures import build_model
from transformer.recipes.cards import on_this_card
from transformer.recipes.estimate import random_batches
from transformer.recipes.presets import PRESETS
from transformer.training.loss import (
    TranslationLoss,
    _chunk_loss,
    perplexity,
    smoothing_weights,
)
from transformer.training.stream import step_batches
from transformer.training.trainer import Trainer

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

    # A single layer on either side: every layer is traced anew. ``life`` trains two.
    trainer = make_trainer(folder, make_model(dropout=0.0), **changes)
    found = dict(loss=[], graphs=[])
    for number, shape in enumerate(FIRST + LATER):
        batch = batch_of(*shape, padded=number % 2 == 1)
        found["loss"].append(trainer._train_step([batch], batch.num_target_tokens).item())
        found["graphs"].append(counters["stats"]["unique_graphs"])
        trainer.step += 1
    found["breaks"] = list(counters["graph_break"])
    return found


def shapes(folder: Path, precision: str) -> dict:
    return {
        name: train(folder / name, compile=compiled, precision=precision)
        for name, compiled in (("plain", False), ("compiled", True))
    }


def life(folder: Path, precision: str) -> dict:
    """Train, measure, search and train again, as a run does; count the graphs after each part."""
    from torch._dynamo.utils import counters

    model = make_model(num_layers=2)
    trainer = make_trainer(folder, model, make_pairs(400), compile=True, precision=precision)
    held_out, device = TokenBatches(make_pairs(60, seed=1), 40), trainer.accelerator.device
    steps, graphs = step_batches(trainer.batches), {}

    def take_steps(count: int) -> None:
        trainer.loss.train()
        for step in islice(steps, count):
            trainer._train_step(step.batches, step.target_tokens)
            trainer.step += 1

    def search(autocast: AbstractContextManager) -> None:
        with autocast:
            for rows, length in ((4, 6), (4, 9), (3, 4), (1, 5)):
                source = torch.randint(3, VOCAB_SIZE, (rows, length), device=device)
                greedy_search(model, source, 6)
                beam_search(model, source, 2, max_length=6)

    parts = {
        "training": lambda: take_steps(30),
        "perplexity": lambda: perplexity(model, held_out, trainer.autocast()),
        "search in half precision": lambda: search(trainer.autocast()),
        "search in float32": lambda: search(nullcontext()),
        "training again": lambda: take_steps(30),
    }
    with torch._dynamo.config.patch(fail_on_recompile_limit_hit=True):
        for name, part in parts.items():
            part()
            graphs[name] = counters["stats"]["unique_graphs"]
    return dict(graphs=graphs, breaks=list(counters["graph_break"]))


def passes(folder: Path, precision: str) -> dict:
    """Compile the loss of a chunk of logits; count how often its kernels read or write them."""
    from torch._inductor import config
    from torch._inductor.graph import GraphLowering

    torch.manual_seed(0)
    weights = smoothing_weights(0.1, 4000, "others-but-padding")
    logits, labels = torch.randn(512, 4000).bfloat16(), torch.randint(1, 4000, (512, 1))
    loss, moved = TranslationLoss(make_model()), []
    loss.compile_chunk(dynamic=True)
    codegen = GraphLowering.codegen

    def count(graph):
        made = codegen(graph)
        moved.extend(node.get_read_write_buffers_sizes() for node in graph.scheduler.nodes)
        return made

    GraphLowering.codegen = count
    found = {}
    with (
        torch.no_grad(),
        config.patch(force_disable_caches=True, cpp_cache_precompile_headers=False),
    ):
        for name, of_chunk in (("plain", _chunk_loss), ("compiled", loss._compiled_chunk)):
            total, log_likelihood, gradient = of_chunk(logits, labels, weights, 0, True)
            found[name] = [total.item(), log_likelihood.item(), *gradient.norm(dim=1).tolist()]
    return found | dict(passes=sum(moved) / logits.nbytes)


def paper(folder: Path, precision: str) -> dict:
    """Train the base model as its preset says on this card; count the graphs."""
    from torch._dynamo.utils import counters

    preset = on_this_card(PRESETS["wmt14-base"])
    batches = random_batches(preset)
    trainer = Trainer(build_model(preset.model), batches, preset.training, folder, progress=False)
    for step in islice(step_batches(batches, preset.training.accumulate), 12):
        trainer._train_step(step.batches, step.target_tokens)
        trainer.step += 1
    return dict(graphs=counters["stats"]["unique_graphs"], breaks=list(counters["graph_break"]))


def run_alone(part: str, folder: Path, device: str = "cpu", precision: str = "fp32") -> dict:
    """Run one of the functions above in a process of its own."""
    path = os.pathsep.join([str(ROOT), str(Path(__file__).parent)])
    environment = dict(PYTHONPATH=path, OMP_NUM_THREADS="1")
    environment["ACCELERATE_USE_CPU"] = str(device == "cpu").lower()
    subprocess.run(
        [sys.executable, __file__, part, str(folder), device, precision],
        env=os.environ | environment, check=True, timeout=600,
    )  # fmt: skip
    return json.loads((folder / "found.json").read_text())


ON_A_GPU = pytest.param(
    "cuda",
    PRESETS["wmt14-base"].training.precision,  # its attention kernels
    marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
)


@pytest.mark.parametrize("device, precision", [("cpu", "fp32"), ON_A_GPU])
def test_new_shapes_compile_nothing_new(tmp_path, device, precision):
    found = run_alone("shapes", tmp_path, device, precision)
    plain, compiled = found["plain"], found["compiled"]
    assert plain["graphs"] == [0] * len(FIRST + LATER)
    # The model and the loss; equal sizes are treated as one until they differ.
    warm, *later = compiled["graphs"][len(FIRST) - 1 :]
    assert 2 <= compiled["graphs"][0] <= warm <= 6 and later == [warm] * len(LATER)
    assert compiled["breaks"] == []
    tolerance = 1e-4 if precision == "fp32" else 0.02
    assert compiled["loss"] == pytest.approx(plain["loss"], rel=tolerance)


@pytest.mark.parametrize("device, precision", [("cpu", "bf16"), ON_A_GPU])
def test_a_whole_run_compiles_few_graphs(tmp_path, device, precision):
    found = run_alone("life", tmp_path, device, precision)
    graphs = found["graphs"]
    assert 2 <= graphs["training"] <= graphs["training again"] <= 8
    assert graphs["training again"] == graphs["search in float32"]
    assert found["breaks"] == []


@pytest.mark.parametrize("device, precision", [ON_A_GPU])
def test_the_base_model_compiles_four_graphs_at_most(tmp_path, device, precision):
    found = run_alone("paper", tmp_path, device, precision)
    assert 2 <= found["graphs"] <= 4 and found["breaks"] == []


@pytest.mark.skipif(missing_for_compiling("cpu") is not None, reason="needs a C++ compiler")
def test_the_compiled_loss_passes_over_the_logits_five_times_at_most(tmp_path):
    found = run_alone("passes", tmp_path)
    assert 2 < found["passes"] < 5.1  # the labels and the sums are small
    assert found["compiled"] == pytest.approx(found["plain"], rel=1e-2)
    assert found["compiled"][:2] == pytest.approx(found["plain"][:2], rel=1e-5)


if __name__ == "__main__":
    torch.set_num_threads(1)
    part, folder, device, precision = sys.argv[1:]
    if device == "cpu" and part != "passes":  # a C++ compiler takes minutes, and changes no count
        compile_function = torch.compile
        torch.compile = lambda function, **how: compile_function(
            function, **dict(backend="aot_eager") | how
        )
    parts = dict(shapes=shapes, life=life, passes=passes, paper=paper)
    found = parts[part](Path(folder), precision)
    (Path(folder) / "found.json").write_text(json.dumps(found))
