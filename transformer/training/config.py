"""How a model is trained: one frozen dataclass.

Paper: sections 5.1 to 5.4
"""

from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from transformer.training.loss import Smoothing

Precision = Literal["fp32", "bf16", "fp16"]


@dataclass(frozen=True)
class TrainingConfig:
    """Everything that decides a training run, besides the model and the data.

    The defaults are the paper's, for 8 GPUs. ``batch_tokens`` times ``accumulate`` times the
    number of processes is what one step sees.

    Args:
        seed: for weights, dropout and the order of the batches.
        max_steps: optimiser steps.
        batch_tokens: most token positions of a batch, on either side, padding included.
        accumulate: batches whose gradients are added up before a step.
        max_length: longer pairs are left out of training; None keeps all that fit a batch.
        warmup_steps: see :func:`~transformer.training.schedule.learning_rate`.
        learning_rate_factor: multiplies Eq. (3).
        beta1: Adam's decay of the mean.
        beta2: Adam's decay of the square.
        adam_eps: Adam's epsilon.
        clip_norm: largest norm of the gradient; None (the paper) does not clip.
        label_smoothing: epsilon of section 5.4.
        smoothing: how it is shared out, see :func:`~transformer.training.loss.smoothing_weights`.
        precision: "fp32", "bf16" or "fp16".
        compile: compile each layer with ``torch.compile``. Slower on most CPUs.
        checkpoint_activations: recompute activations in the backward pass: less memory, more time.
        shard: let several processes share out weights, gradients and Adam's moments (FSDP), where
            otherwise each holds all of them: less memory, more time. One process ignores it.
        log_every: steps between two lines of the curve.
        validate_every: steps between two validations.
        save_every: steps between two checkpoints.
        keep_last: weights of this many checkpoints are kept, and averaged at the end.

    Raises:
        ValueError: if a number is out of range or a name unknown.

    Paper: sections 5.1 to 5.4 and 6.1
    """

    seed: int = 0
    max_steps: int = 100_000
    batch_tokens: int = 4096
    accumulate: int = 1
    max_length: int | None = 256
    warmup_steps: int = 4000
    learning_rate_factor: float = 1.0
    beta1: float = 0.9
    beta2: float = 0.98
    adam_eps: float = 1e-9
    clip_norm: float | None = None
    label_smoothing: float = 0.1
    smoothing: Smoothing = "uniform"
    precision: Precision = "fp32"
    compile: bool = False
    checkpoint_activations: bool = False
    shard: bool = False
    log_every: int = 50
    validate_every: int = 1000
    save_every: int = 1000
    keep_last: int = 5

    def __post_init__(self) -> None:
        for name in (
            "max_steps",
            "batch_tokens",
            "accumulate",
            "warmup_steps",
            "log_every",
            "validate_every",
            "save_every",
            "keep_last",
        ):
            value = getattr(self, name)
            self._require(name, isinstance(value, int) and value >= 1, "whole and at least 1")
        for name in ("beta1", "beta2", "label_smoothing"):
            self._require(name, 0 <= getattr(self, name) < 1, "in [0, 1)")
        for name in ("learning_rate_factor", "adam_eps"):
            self._require(name, getattr(self, name) > 0, "above 0")
        self._require("seed", self.seed >= 0, "at least 0")
        self._require("clip_norm", self.clip_norm is None or self.clip_norm > 0, "None or above 0")
        for name, kind in dict(smoothing=Smoothing, precision=Precision).items():
            self._require(name, getattr(self, name) in get_args(kind), f"one of {get_args(kind)}")

    def _require(self, name: str, holds: bool, expected: str) -> None:
        if not holds:
            raise ValueError(f"{name} must be {expected}, got {getattr(self, name)!r}")

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as plain values."""
        return asdict(self)
