"""What a step launches, computes and moves is what one counts by hand."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch._inductor.runtime.triton_heuristics import CachingAutotuner

from transformer.recipes.cards import CARDS, OVERHEAD, Card, on_card, step_seconds
from transformer.recipes.estimate import random_batches
from transformer.recipes.presets import get_preset
from transformer.recipes.record import read_record
from transformer.training.stream import step_batches
from transformer_book.speed import roofline
from transformer_book.speed.record_roofline import VARIANTS
from transformer_book.speed.roofline import RECORD, StepCount, count_steps, counting


def test_a_linear_layer_and_a_norm():
    model, x = nn.Sequential(nn.Linear(8, 16), nn.LayerNorm(16)), torch.randn(4, 8)
    with counting("cpu") as counter:
        model(x).sum().backward()
    assert counter.product_flops == 2 * 2 * 4 * 8 * 16  # the output, the gradient of the weight
    rows, statistics, weights = 4 * 16 * 4, 2 * 4 * 4, 2 * 16 * 4
    norm = rows + weights + rows + statistics
    total, ones = rows + 4, 4
    gradient = 4 + rows + statistics + weights + rows + weights
    bias = rows + 16 * 4
    assert counter.other_bytes == norm + total + ones + gradient + bias
    assert counter.kernels == 5 + 2  # the two products as well


def test_views_are_free_and_only_touched_rows_move():
    table, rows = torch.zeros(1000, 4), torch.tensor([3, 5])
    with counting("cpu") as counter:
        found = table.t().t()[:].index_select(0, rows)
        torch.empty(7)
    assert (counter.kernels, counter.other_bytes) == (1, 2 * found.nbytes + rows.nbytes)
    with counting("cpu") as counter:
        table.index_put_((rows,), found)
    assert counter.other_bytes == 3 * found.nbytes + rows.nbytes
    with counting("cpu") as counter:
        found.zero_()
        found.add_(1)
    assert (counter.kernels, counter.other_bytes) == (2, found.nbytes + 2 * found.nbytes)
    with counting("cuda") as counter:
        found.add_(1)
    assert counter.kernels == 0


def test_a_compiled_kernel_reads_and_writes_what_it_changes(monkeypatch):
    launched = []
    monkeypatch.setattr(CachingAutotuner, "run", lambda kernel, *args, **_: launched.append(args))
    names = ["in_out_ptr0", "in_ptr0", "out_ptr0", "xnumel"]
    kernel = SimpleNamespace(fn=SimpleNamespace(arg_names=names))
    with counting() as counter:
        CachingAutotuner.run(kernel, torch.zeros(10), torch.zeros(3), torch.zeros(5), 10, stream=0)
    assert (counter.kernels, counter.other_bytes, len(launched)) == (1, 4 * (2 * 10 + 3 + 5), 1)


def test_compiled_functions_stay_compiled():
    ran = []

    def backend(graph, _):
        return lambda *inputs: ran.append(inputs) or graph(*inputs)

    double, x = torch.compile(lambda x: 2 * x, backend=backend), torch.zeros(5)
    double(x)
    with counting("cpu") as counter:
        double(x)
    assert len(ran) == 2 and counter.kernels == 1


def test_a_step_has_six_operations_per_weight_and_token(preset):
    preset = preset.with_changes(fast=False)  # with padding, as on a GPU
    batches = random_batches(preset, mean_length=10, count=300)
    count = count_steps(preset, batches, steps=2)
    config, stream = preset.model, step_batches(batches)
    d, layers = config.d_model, config.num_layers
    flops = tokens = 0
    for step in [next(stream) for _ in range(2)]:
        (batch,) = step.batches
        source, target = batch.source.numel(), batch.labels.numel()
        encoder = source * (4 * d * d + 2 * d * config.d_ff)
        decoder = target * (6 * d * d + 2 * d * config.d_ff) + source * 2 * d * d
        flops += 6 * (layers * (encoder + decoder) + step.target_tokens * d * config.vocab_size)
        tokens += step.target_tokens
    assert count.product_flops == flops / 2  # PyTorch does not count attention on a CPU
    assert (count.target_tokens, count.batches) == (tokens / 2, 1)


def test_what_compiles_has_run_on_the_same_batches_before(preset, monkeypatch):
    seen = []
    monkeypatch.setattr(roofline.Trainer, "_train_step", lambda _, group, count: seen.append(count))
    count_steps(preset, random_batches(preset, mean_length=10, count=300), steps=3)
    assert len({*seen[:3]}) > 1 and seen[3:] == seen[:3]


def test_time_and_utilisation_on_a_card():
    card = Card("toy", 0, flops=1e12, bandwidth=1e9, dollars=0.0)
    count = StepCount(10.0, 0.55e12, 0.8e9, 1, 100.0, 0)
    assert count.seconds(card) == pytest.approx(1 + 1)
    assert count.utilisation(card) == pytest.approx(0.55 / 2)
    assert StepCount(10.0, 0.0, 0.0, 2, 100.0, 0).seconds(card) == 2 * 0.02  # the host's


def test_the_compiler_saves_kernels_and_traffic_in_the_record():
    record = read_record(RECORD)
    card = CARDS[record["card"]]
    assert "dirty" not in record["environment"]["code"]
    for name, counts in record["presets"].items():
        found = [StepCount(**counts[variant]) for variant in VARIANTS if variant in counts]
        for slower, faster in zip(found, found[1:], strict=False):
            assert slower.product_flops == faster.product_flops, name
            assert slower.other_bytes > faster.other_bytes, name
            assert slower.seconds(card) > faster.seconds(card), name
            assert slower.kernels >= faster.kernels, name


def test_the_estimate_of_a_card_agrees_with_the_counts_of_the_record():
    record = read_record(RECORD)
    for name, counts in record["presets"].items():
        for variant, count in counts.items():
            changes, _ = VARIANTS[variant]
            card = replace(CARDS[record["card"]], compiler=variant != "eager")
            estimate = step_seconds(on_card(get_preset(name), card).with_changes(**changes), card)
            counted = OVERHEAD * StepCount(**count).seconds(card)
            assert estimate == pytest.approx(counted, rel=0.15), (name, variant)
