"""The recipe: the paper's by default, and nothing out of range."""

import warnings
from pathlib import Path

import pytest
import torch

from transformer.training import config
from transformer.training.config import TrainingConfig, multiplies_bfloat16, usable_precision

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


@pytest.mark.parametrize(
    "device, capability, asked, used",
    [
        ("cpu", (7, 5), "bf16", "fp32"),
        ("cpu", (7, 5), "fp32", "fp32"),
        ("cuda", (7, 5), "bf16", "fp16"),
        ("cuda", (7, 5), "fp32", "fp32"),
        ("cuda", (7, 5), "fp16", "fp16"),
        ("cuda", (8, 0), "bf16", "bf16"),
    ],
)
def test_a_device_without_bfloat16_gets_another_precision_and_a_line_says_so(
    monkeypatch, device, capability, asked, used
):
    monkeypatch.setattr(config, "multiplies_bfloat16", lambda: False)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device=None: capability)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        assert usable_precision(asked, torch.device(device)) == used
    assert len(found) == (used != asked)
    for each in found:
        assert f'"{used}" instead of "{asked}"' in str(each.message)
    with pytest.raises(ValueError, match='"fp16" needs a GPU'):
        usable_precision("fp16", torch.device("cpu"))


@pytest.mark.parametrize("first", range(1, 30, 4))
@pytest.mark.parametrize("slower, fast", [(2, True), (25, False), (100, False)])
def test_load_does_not_hide_how_fast_bfloat16_is(monkeypatch, slower, fast, first):
    """While another program runs, which it does for ten products, one takes 40 times as long."""
    clock, products = [0.0], []

    def multiply(x, other):
        products.append(x.dtype)
        load = 40 if first <= len(products) < first + 10 else 1
        clock[0] += load * (slower if x.dtype == torch.bfloat16 else 1)

    monkeypatch.setattr(torch.Tensor, "__matmul__", multiply)
    monkeypatch.setattr(config, "perf_counter", lambda: clock[0])
    assert multiplies_bfloat16.__wrapped__() == fast
