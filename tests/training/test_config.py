"""The recipe: the paper's by default, and nothing out of range."""

import dataclasses

import pytest

from transformer.training.config import TrainingConfig


def test_the_defaults_are_the_papers():
    c = TrainingConfig()
    assert (c.max_steps, c.warmup_steps, c.learning_rate_factor) == (100_000, 4000, 1.0)
    assert (c.beta1, c.beta2, c.adam_eps) == (0.9, 0.98, 1e-9)
    assert (c.label_smoothing, c.clip_norm, c.keep_last) == (0.1, None, 5)


def test_it_is_frozen_and_comes_back_from_plain_values():
    config = TrainingConfig(max_steps=7, clip_norm=1.0, smoothing="others")
    assert TrainingConfig(**config.to_dict()) == config
    with pytest.raises(dataclasses.FrozenInstanceError):
        config.max_steps = 3


COUNTS = [
    "max_steps",
    "batch_tokens",
    "accumulate",
    "warmup_steps",
    "log_every",
    "validate_every",
    "save_every",
    "keep_last",
]


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


@pytest.mark.parametrize("field", COUNTS)
def test_one_is_enough(field):
    assert getattr(TrainingConfig(**{field: 1}), field) == 1
