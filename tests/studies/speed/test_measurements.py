"""Steps, throughput and scale are measured as they are, and their parts add up."""

import json
import sys
from itertools import islice
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch
import torch.nn.functional as F
from torch.autograd import DeviceType
from torch.autograd.profiler_util import FunctionEvent, Interval
from torch.profiler import ProfilerActivity, profile

from transformer.baselines import RecurrentConfig
from transformer.data.batching import padding_waste
from transformer.recipes import cards
from transformer.recipes.architectures import count_parameters
from transformer.recipes.cards import CARDS, on_card
from transformer.recipes.estimate import random_batches, training_bytes
from transformer.recipes.presets import Preset, get_preset
from transformer.recipes.record import read_record
from transformer.training import trainer
from transformer.training.stream import step_batches
from transformer_book.speed import scale, throughput
from transformer_book.speed.bench import PARTS
from transformer_book.speed.comparison import summarise
from transformer_book.speed.step_time import KINDS, StepTime, measure_step_time, seconds_by_kind
from transformer_book.speed.throughput import batch_flops, matrix_rate, measure_throughput
from transformer_book.studies.recording import same_recipe


@pytest.fixture(scope="module")
def batches(preset):
    return random_batches(preset, mean_length=10, count=300)


def test_the_parts_of_a_step_add_up(preset, batches):
    found = measure_step_time(preset.model, batches, preset.training, steps=3)
    assert set(found.kinds) == set(KINDS) - {"fused by the compiler"}  # nothing is compiled here
    assert sum(found.shares.values()) == pytest.approx(1) and found.seconds_per_step > 0
    stream = step_batches(batches)
    tokens = [next(stream).target_tokens for _ in range(8)]
    assert found.target_tokens_per_step == pytest.approx(sum(tokens[2:5]) / 3)
    double = preset.with_changes(accumulate=2).training
    again = measure_step_time(preset.model, batches, double, steps=1)
    assert again.target_tokens_per_step > 1.5 * found.target_tokens_per_step


def test_a_gradient_is_of_the_kind_of_its_operation():
    x = torch.randn(512, 512, requires_grad=True)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        F.dropout(x, 0.5).sum().backward()
    events = list(profiler.events())
    forward = [e for e in events if "dropout" in e.name or "bernoulli" in e.name]
    own = sum(e.self_cpu_time_total for e in forward) / 1e6
    # The rest is the product with the mask in the backward pass.
    assert seconds_by_kind(events, 1.0, on_gpu=False)["dropout"] > own


def test_kernels_count_as_what_started_them_and_gaps_as_idle():
    def event(name, device=DeviceType.CPU, start=0, end=0, kernels=(), parent=None):
        made = Mock(
            spec=FunctionEvent, device_type=device, sequence_nr=-1, cpu_parent=parent,
            kernels=[SimpleNamespace(name=name, duration=duration) for name, duration in kernels],
            time_range=Interval(start, end),
        )  # fmt: skip
        made.name = name
        return made

    cuda, optimizer = DeviceType.CUDA, event("Optimizer.step#Adam.step", end=90)
    events = [
        event("aten::mm", kernels=[("nvjet_1", 300)]),
        event("aten::add", kernels=[("elementwise", 100)]),
        optimizer,
        event("aten::_fused_adam_", kernels=[("multi_tensor", 50)], parent=optimizer),
        event("Optimizer.step#Adam.step", cuda, 0, 5000),  # the range as the GPU shows it
        event("nvjet_1", cuda, 1000, 1300),
        event("triton_red_fused_1", cuda, 3000, 3200),  # no operation started it
    ]
    found = seconds_by_kind(events, elapsed=0.001, on_gpu=True)
    assert {kind: round(1e6 * seconds) for kind, seconds in found.items() if seconds} == {
        "matrix products": 300, "the rest": 100, "optimizer": 50, "fused by the compiler": 200,
        "nothing at work": 350,
    }  # fmt: skip


def test_throughput_counts_the_timed_steps(preset, batches, monkeypatch):
    monkeypatch.setattr(throughput, "matrix_rate", lambda *_: 1e9)
    found = json.loads(json.dumps(measure_throughput(preset, batches, "noise", blocks=3, steps=2)))
    stream = step_batches(batches)
    timed = [next(stream)[0][0] for _ in range(10)][4:]  # without the blocks to warm up
    tokens = sum(int((batch.labels != 0).sum()) for batch in timed) / 6
    flops = sum(batch_flops(preset.model, batch) for batch in timed) / 6
    assert found["steps"] == 6 and found["target_tokens_per_step"] == pytest.approx(tokens)
    assert found["utilisation"] == pytest.approx(flops / found["seconds_per_step"] / 1e9)
    assert len(found["target_tokens_per_second_of_blocks"]) == 3
    other = Preset("toy", RecurrentConfig(50, d_model=16)).with_changes(
        batch_tokens=200, max_length=20, warmup_steps=2
    )
    found = measure_throughput(other, random_batches(other, 8, count=100), "", blocks=1, steps=1)
    assert found["utilisation"] is None and found["target_tokens_per_second"] > 0


def test_utilisation_is_that_of_the_precision_in_use(preset, batches, monkeypatch):
    asked = []
    monkeypatch.setattr(trainer, "usable_precision", lambda *_: "fp32")  # as bf16 on a T4: fp16
    monkeypatch.setattr(throughput, "matrix_rate", lambda *given: asked.append(given) or 1e9)
    half = preset.with_changes(precision="bf16")
    found = measure_throughput(half, batches, "noise", blocks=1, steps=1)
    assert found["precision"] == "fp32" and asked[0][1] == "fp32"


def test_a_preset_is_measured_as_it_trains_on_this_card(tmp_path, monkeypatch):
    t4, measured = CARDS["t4"], []
    monkeypatch.setattr(cards, "this_card", lambda: t4)
    monkeypatch.setattr(throughput, "record_throughput", lambda preset, _: measured.append(preset))
    monkeypatch.setattr(sys, "argv", ["throughput", "wmt14-big", "--output", str(tmp_path)])
    throughput.main()
    assert measured == [on_card(get_preset("wmt14-big"), t4)]


def test_random_batches_have_as_little_padding_as_a_large_text(tmp_path, monkeypatch):
    found = []

    def measure(preset, batches, text):
        found.append(padding_waste([batches.batch(rows) for rows in islice(batches.epoch(0), 200)]))
        return {}

    monkeypatch.setattr(throughput, "measure_throughput", measure)
    parts = StepTime("cpu", "fp32", 1, 1.0, 1.0, {})
    monkeypatch.setattr(throughput, "measure_step_time", lambda *_: parts)
    throughput.record_throughput(get_preset("wmt14-base"), tmp_path)
    assert 0 < found[0] < 0.01


def test_matrix_rate_of_this_machine():
    assert 1e8 < matrix_rate(torch.device("cpu")) < 1e14


def test_ratios_are_computed_within_a_round():
    rows = summarise({"a": [10.0, 100.0, 30.0], "b": [10.0, 50.0, 10.0]})
    assert rows[1] == dict(name="b", median=10.0, ratio=2.0, least=1.0, most=3.0)


def test_long_outputs_have_the_length_that_is_timed():
    assert PARTS["length"].tasks()["64 tokens"]() == 64 * 16


def test_larger_runs_on_paper():
    big, large = scale.planned_runs()
    assert big.target_tokens == large.target_tokens == 28e9
    # Six operations per weight and token, for roughly half of the weights of each side's layers.
    weights = 1024 * 37_000 + 176e6  # the output projection and all layers
    assert big.flops == pytest.approx(6 * 28e9 * weights, rel=0.15)
    assert 6.5 < large.flops / big.flops < 8  # the output projection only doubles
    one, eight = big.seconds("H100"), big.seconds("H100", 8)
    assert one == pytest.approx(8 * eight) == pytest.approx(big.flops / scale.UTILISATION / 989e12)
    assert big.seconds("A100") == pytest.approx(one * 989 / 312)
    count, alone, whole = scale.memory(get_preset("wmt14-big"))
    assert whole == 12 * count
    assert alone - scale.memory(get_preset("wmt14-big"), 8)[1] == 14 * count


def test_a_text_is_taken_in_proportion():
    encode = dict(cpu_seconds=3.0, source_tokens=150, target_tokens=50)
    start = dict(cpu_seconds=0.5, peak_bytes=1400, idle_bytes=1000)
    found = dict(text_bytes=800, learn=dict(cpu_seconds=1.0), encode=encode, start_again=start)
    text = scale.planned_text(100, dict(pairs={"9": {}, "10": found}))  # 5,600 tokens, 28 times
    assert (text.text_bytes, text.prepare_seconds) == (28 * 800, pytest.approx(28 * 4.0))
    assert (text.plan_bytes, text.start_seconds) == (10 * 400, pytest.approx(5.0))
    assert text.cache_bytes == 5600 * 2 + 100 * 32


@pytest.mark.parametrize(
    "path", sorted(throughput.MEASUREMENTS.glob("*.json")), ids=lambda p: p.stem
)
def test_the_memory_of_a_card_is_estimated_as_it_was_recorded(path):
    record = read_record(path)
    (card,) = (card for name, card in CARDS.items() if name in record["device"].lower())
    preset = on_card(get_preset(record["preset"]["name"]), card)
    assert same_recipe(record, preset)
    assert record["peak_memory_bytes"] == pytest.approx(
        training_bytes(preset.model, preset.training, count_parameters(preset.model)), rel=0.25
    )
