"""The recipe: the paper's by default, and nothing out of range."""

import warnings

import pytest

from transformer.training.config import TrainingConfig, require_precision


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
        *((name, 1.0) for name in ("beta1", "beta2", "label_smoothing")),
        *((name, 0.0) for name in ("learning_rate_factor", "adam_eps", "clip_norm")),
        ("learning_rate_factor", float("nan")),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(field, value):
    with pytest.raises(ValueError, match=f"{field} must be .*, got {value!r}"):
        TrainingConfig(**{field: value})


@pytest.mark.parametrize(
    "precision, device, flags, warns",
    [
        ("bf16", "cpu", "avx2 fma", True),
        ("bf16", "cpu", "avx512_bf16", False),
        ("bf16", "cpu", None, False),  # an unknown processor
        ("bf16", "cuda", "avx2", False),
        ("fp32", "cpu", "avx2", False),
        ("fp16", "cuda", "avx2", False),
    ],
)
def test_slow_half_precision_warns(tmp_path, precision, device, flags, warns):
    processor = tmp_path / "cpuinfo"
    if flags:
        processor.write_text(f"flags\t\t: fpu sse2 {flags}\n")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        require_precision(precision, device, processor)
    assert len(found) == warns


def test_float16_needs_a_gpu():
    with pytest.raises(ValueError, match='"fp16" needs a GPU'):
        require_precision("fp16", "cpu")
