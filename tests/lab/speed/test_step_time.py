"""The time of a step is found out whole, and each operation counts as what it is part of."""

import time
from types import SimpleNamespace
from unittest.mock import Mock

import pytest
import torch
import torch.nn.functional as F
from accelerate.state import AcceleratorState
from torch.autograd import DeviceType
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile

from transformer.lab.speed import step_time
from transformer.lab.speed.step_time import (
    KINDS,
    StepTime,
    _Lines,
    covered,
    kernel_seconds,
    kind_of,
    measure_step_time,
    operation_seconds,
)
from transformer.recipes.throughput import random_batches
from transformer.training.stream import step_batches


@pytest.fixture(scope="module")
def batches(preset):
    return random_batches(preset, mean_length=10, count=300)


@pytest.fixture(autouse=True, scope="module")
def on_the_cpu():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ACCELERATE_USE_CPU", "true")
        AcceleratorState._reset_state(reset_partial_state=True)
        yield
    AcceleratorState._reset_state(reset_partial_state=True)


def measure(preset, batches, **numbers):
    """Measure; return also what the profiler noted."""
    noted = {}

    def note(events, elapsed):
        noted.update(events=list(events), elapsed=elapsed)
        return operation_seconds(events, elapsed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step_time, "operation_seconds", note)
        found = measure_step_time(preset.model, batches, preset.training, **numbers)
    return found, noted


@pytest.fixture(scope="module")
def measured(preset, batches):
    return measure(preset, batches, steps=3, warmup=2)


def test_the_parts_are_the_whole(measured):
    found, noted = measured
    assert set(found.kinds) == set(KINDS) - {"fused by the compiler"}  # nothing is compiled here
    assert sum(found.kinds.values()) == pytest.approx(noted["elapsed"] / 3)
    assert list(found.shares.values()) == sorted(found.shares.values(), reverse=True)
    assert sum(found.shares.values()) == pytest.approx(1)
    assert found.seconds_per_step > 0
    assert StepTime(**found.to_record()) == found


def test_so_many_steps_are_profiled_and_no_more(measured, batches):
    found, noted = measured
    names = [event.name for event in noted["events"]]
    assert names.count("Optimizer.step#Adam.step") == found.steps == 3
    stream = step_batches(batches)
    tokens = [next(stream).target_tokens for _ in range(8)]
    assert found.target_tokens_per_step == pytest.approx(sum(tokens[5:]) / 3)


def test_accumulated_batches_are_one_step(preset, batches, measured):
    found, noted = measure(preset.with_changes(accumulate=2), batches, steps=2, warmup=1)
    names = [event.name for event in noted["events"]]
    assert names.count("Optimizer.step#Adam.step") == 2
    assert names.count("_ProjectedCrossEntropy") == 4
    assert found.target_tokens_per_step > 1.5 * measured[0].target_tokens_per_step


@pytest.mark.parametrize("name", ["steps", "warmup"])
def test_a_number_of_steps_has_to_be_positive(preset, batches, name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        measure_step_time(preset.model, batches, preset.training, **{name: 0})


@pytest.mark.parametrize("threads, clock", [(1, time.process_time), (2, time.perf_counter)])
def test_several_threads_are_timed_by_the_clock(threads, clock, monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    stages = step_time._Stages(torch.device("cpu"), warmup=1, steps=1)
    assert stages._clock() == pytest.approx(clock(), abs=1)


# ---------------------------------------------------------------------- kinds


@pytest.mark.parametrize(
    "kind, names",
    [
        ("matrix products", ["aten::addmm", "aten::linear"]),
        ("matrix products", ["mkldnn::_linear_pointwise", "_ProjectedCrossEntropy"]),
        ("matrix products", ["nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT", "aten::mm"]),
        ("matrix products", ["sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64"]),
        ("attention core", ["aten::bmm", "aten::scaled_dot_product_attention"]),
        ("attention core", ["fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention)"]),
        ("attention core", ["aten::copy_", "ScaledDotProductFlashAttentionForCpuBackward0"]),
        ("vocabulary loss", ["aten::exp_", "_ProjectedCrossEntropy"]),
        ("dropout", ["aten::bernoulli_", "aten::dropout"]),
        ("layer norm", ["aten::native_layer_norm_backward", "NativeLayerNormBackward0"]),
        ("optimizer", ["aten::_fused_adam_", "Optimizer.step#Adam.step"]),
        ("optimizer", ["void at::native::multi_tensor_apply_kernel", "Optimizer.step#Adam.step"]),
        ("copies and padding", ["aten::copy_", "aten::clone", "aten::flatten"]),
        ("copies and padding", ["Memcpy HtoD (Pinned -> Device)", "aten::to"]),
        ("fused by the compiler", ["triton_poi_fused_add_native_dropout_3", "CompiledFunction"]),
        ("the rest", ["aten::relu"]),
    ],
)
def test_the_kind_of_an_operation(kind, names):
    assert kind_of(names) == kind and kind in KINDS


def test_a_gradient_is_of_the_kind_of_its_operation():
    x = torch.randn(64, 64, requires_grad=True)
    with profile(activities=[ProfilerActivity.CPU]) as profiler:
        (F.dropout(x, 0.5) * x).sum().backward()  # two products, element by element: one is dropout
    events = list(profiler.events())
    lines = _Lines(events)
    kinds = [
        kind_of(lines.of(event))
        for event in events
        if event.cpu_parent is not None and event.cpu_parent.name == "MulBackward0"
    ]
    assert sorted(kinds) == ["dropout", "the rest", "the rest"]  # of two factors, and of one


# ---------------------------------------------------------------------- a GPU, by hand


def named(name, device=DeviceType.CPU, start=0, end=0, kernels=(), parent=None):
    made = Mock(
        spec=FunctionEvent, device_type=device, sequence_nr=-1, cpu_parent=parent,
        kernels=[SimpleNamespace(name=name, duration=duration) for name, duration in kernels],
        time_range=SimpleNamespace(start=start, end=end),
    )  # fmt: skip
    made.name = name  # Mock takes the argument of that name for itself
    return made


def test_kernels_count_as_what_started_them_and_gaps_as_idle():
    cuda = DeviceType.CUDA
    optimizer = named("Optimizer.step#Adam.step", end=90)
    events = [
        named("aten::mm", kernels=[("nvjet_1", 300)]),
        named("aten::add", kernels=[("elementwise", 100)]),
        optimizer,
        named("aten::_fused_adam_", kernels=[("multi_tensor", 50)], parent=optimizer),
        named("Optimizer.step#Adam.step", cuda, 0, 5000),  # the range as the GPU shows it
        named("nvjet_1", cuda, 1000, 1300),
        named("elementwise", cuda, 1250, 1350),  # beside the other, in part
        named("multi_tensor", cuda, 2000, 2050),
        named("triton_red_fused_1", cuda, 3000, 3200),  # nobody says who started it
    ]
    found = kernel_seconds(events, elapsed=0.001)
    kinds = {kind: round(1e6 * seconds) for kind, seconds in found.items() if seconds}
    assert kinds == {
        "matrix products": 300, "the rest": 100, "optimizer": 50, "fused by the compiler": 200,
        "nothing at work": 1000 - 350 - 50 - 200,
    }  # fmt: skip


def test_what_overlaps_is_covered_once():
    assert covered([(5, 6), (0, 3), (1, 2), (2, 4)]) == 5
    assert covered([]) == 0


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_on_a_gpu(preset, batches, monkeypatch):
    monkeypatch.setenv("ACCELERATE_USE_CPU", "false")
    AcceleratorState._reset_state(reset_partial_state=True)
    found = measure_step_time(preset.model, batches, preset.training)
    assert {"matrix products", "optimizer", "dropout", "nothing at work"} <= set(found.kinds)
    assert sum(found.kinds.values()) == pytest.approx(found.seconds_per_step, rel=0.5)
