"""The recipe: the paper's by default, and nothing out of range."""

import warnings
from pathlib import Path

import pytest
import torch

from transformer.training import config
from transformer.training.config import TrainingConfig, usable_precision

ROOT = Path(__file__).parents[2]


def test_the_defaults_are_the_papers():
    c = TrainingConfig()
    assert (c.max_steps, c.warmup_steps, c.learning_rate_factor) == (100_000, 4000, 1.0)
    assert (c.beta1, c.beta2, c.adam_eps) == (0.9, 0.98, 1e-9)
    assert (c.label_smoothing, c.clip_norm, c.keep_last) == (0.1, None, 5)


COUNTS = ["max_steps", "batch_tokens", "accumulate", "warmup_steps"]
COUNTS += ["log_every", "validate_every", "save_every", "keep_last"]


@pytest.mark.parametrize(
    "field, value",
    [
        *((name, 0) for name in COUNTS),
        *((name, -0.1) for name in ("beta1", "beta2", "label_smoothing", "clip_norm")),
        ("seed", -1),
        ("seed", 2**32),
        *((name, 1.0) for name in ("beta1", "beta2", "label_smoothing")),
        *((n, 0.0) for n in ("learning_rate_factor", "adam_eps", "clip_norm", "state_minutes")),
        *(("learning_rate_factor", value) for value in (float("nan"), float("inf"))),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(field, value):
    with pytest.raises(ValueError, match=f"{field} must be .*, got {value!r}"):
        TrainingConfig(**{field: value})


@pytest.mark.parametrize("asked, fast, used", [
    ("bf16", False, "fp32"), ("bf16", True, "bf16"), ("fp32", False, "fp32"),
])  # fmt: skip
def test_a_processor_without_bfloat16_trains_in_float32_and_a_line_says_so(
    monkeypatch, asked, fast, used
):
    monkeypatch.setattr(config, "multiplies_bfloat16", lambda: fast)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert usable_precision(asked, torch.device("cpu")) == used
    assert [str(each.message) for each in found] == [
        "PyTorch has no fast products of bfloat16 on this processor: training runs in "
        '"fp32" instead of "bf16"'
    ] * (used != asked)


def test_float16_needs_a_gpu():
    with pytest.raises(ValueError, match='"fp16" needs a GPU'):
        usable_precision("fp16", torch.device("cpu"))


@pytest.mark.parametrize(
    "capability, asked, used",
    [
        ((7, 5), "bf16", "fp16"),
        ((7, 5), "fp32", "fp32"),
        ((7, 5), "fp16", "fp16"),
        ((8, 0), "bf16", "bf16"),
        ((9, 0), "bf16", "bf16"),
    ],
)
def test_a_gpu_without_bfloat16_trains_in_float16_and_a_line_says_so(
    monkeypatch, capability, asked, used
):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: capability)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert usable_precision(asked, torch.device("cuda", 0)) == used
    assert len(found) == (used != asked)
    if found:
        line = str(found[0].message)
        assert "7.5" in line and '"fp16" instead of "bf16"' in line and "\n" not in line
