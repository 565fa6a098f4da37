"""The recipe of a training run in one frozen dataclass, and whether a machine can train it."""

import math
import warnings
from dataclasses import dataclass
from functools import cache
from time import perf_counter
from typing import Literal

import torch

from transformer.settings import POSITIVE, RATE, Settings, whole
from transformer.training.loss import Smoothing

Precision = Literal["fp32", "bf16", "fp16"]

#: Fields that may change when a run resumes.
RESUMABLE = (
    "max_steps",
    "log_every",
    "keep_last",
    "state_minutes",
    "shard",
    "fast",
    "compile",
    "checkpoint_activations",
)


@dataclass(frozen=True)
class TrainingConfig(Settings):
    """Everything that determines a training run, apart from the model and the data.

    The defaults are the paper's, for 8 GPUs. One step processes ``batch_tokens`` times
    ``accumulate`` times the number of processes.

    Args:
        seed: of dropout and of the order of the batches, 0 to 2**32 - 1; recipes also draw the
            initial weights with it.
        max_steps: optimizer steps.
        batch_tokens: largest number of token positions per batch and side, padding included.
        accumulate: batches whose gradients are summed before a step.
        max_length: longer pairs are left out of training; None keeps all that fit a batch.
        warmup_steps: see :func:`~transformer.training.schedule.learning_rate`.
        learning_rate_factor: multiplies Eq. (3).
        beta1: Adam's decay rate of the first moment.
        beta2: Adam's decay rate of the second moment.
        adam_eps: Adam's epsilon.
        clip_norm: largest norm of the gradient; None (the paper) does not clip.
        label_smoothing: epsilon of section 5.4.
        smoothing: its distribution, see :func:`~transformer.training.loss.smoothing_weights`.
        precision: "fp32", "bf16" or "fp16"; see :func:`usable_precision`.
        half_residual: keep the sums between the layers in that half precision, too: less memory
            and less traffic on a GPU. It needs a Transformer, in "bf16" or "fp16".
        fast: on a CPU, train with the classes of :mod:`transformer.fast`.
        compile: compile model and loss with ``torch.compile``; on CUDA the loss is compiled anyway.
            Slower on most CPUs. Without a compiler on this machine, a warning says so and training
            runs uncompiled.
        checkpoint_activations: recompute activations in the backward pass: less memory, more time.
        shard: divide weights, gradients and Adam's moments among the processes (FSDP) instead of
            keeping a copy in each: less memory, more time. Each process also keeps a whole copy of
            the weights on its device, for validation. No effect with one process.
        log_every: largest number of steps between two lines of the curve.
        validate_every: steps between two validations.
        save_every: steps between two checkpoints of the weights.
        keep_last: number of latest checkpoints that are kept, and averaged at the end.
        state_minutes: minutes of training between two saves of the state from which a run resumes,
            three times as large as the weights; None saves it with each checkpoint. It is also
            saved at the end and when a signal stops the run.

    Raises:
        TypeError: if there is no such field.
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
    half_residual: bool = False
    fast: bool = True
    compile: bool = False
    checkpoint_activations: bool = False
    shard: bool = False
    log_every: int = 50
    validate_every: int = 1000
    save_every: int = 1000
    keep_last: int = 5
    state_minutes: float | None = 5.0

    _kind = "training field"
    _numbers = dict(
        seed=whole(0, 2**32 - 1),
        **dict.fromkeys(("beta1", "beta2", "label_smoothing"), RATE),
        **dict.fromkeys(("learning_rate_factor", "adam_eps"), POSITIVE),
        **dict.fromkeys(("clip_norm", "state_minutes"), POSITIVE),
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.half_residual and self.precision == "fp32":
            raise ValueError('half_residual must be False with precision="fp32", got True')


def usable_precision(precision: Precision, device: torch.device) -> Precision:
    """Return the precision in which a device trains when a recipe asks for ``precision``.

    A GPU of compute capability below 8, such as a T4, has no units for bfloat16: it gets float16
    instead. A processor without instructions for bfloat16 gets float32: oneDNN has no kernels for
    it there, and a step would take more than ten times as long. A warning says so in both cases.
    The recipe of the run stays the same, and it may resume on a machine that has them.

    Raises:
        ValueError: if "fp16" is requested on a CPU.
    """
    if device.type == "cuda" and precision == "bf16":
        major, minor = torch.cuda.get_device_capability(device)
        if major < 8:
            warnings.warn(
                f"this GPU has compute capability {major}.{minor} and no units for bfloat16 (they "
                'came with 8.0): training runs in "fp16" instead of "bf16"',
                stacklevel=2,
            )
            return "fp16"
    on_cpu = device.type == "cpu"
    if on_cpu and precision == "fp16":
        raise ValueError('precision "fp16" needs a GPU; use "bf16" or "fp32" on a CPU')
    if on_cpu and precision == "bf16" and not multiplies_bfloat16():
        warnings.warn(
            "PyTorch has no fast products of bfloat16 on this processor: training runs in "
            '"fp32" instead of "bf16"',
            stacklevel=2,
        )
        return "fp32"
    return precision


@cache
def multiplies_bfloat16() -> bool:
    """Say whether products of bfloat16 matrices are fast on this processor, by timing one.

    Its flags do not say what PyTorch uses. Without a kernel, a product takes 25 to 120 times as
    long as in float32; with one that has to do without instructions for bfloat16, twice as long.
    """
    factors = [torch.ones(256, 256, dtype=t, device="cpu") for t in (torch.bfloat16, torch.float32)]
    best = [math.inf, math.inf]
    for _ in range(11):  # the first prepares the kernels; taken in turns, load disturbs both
        for place, x in enumerate(factors):
            started = perf_counter()
            x @ x
            best[place] = min(best[place], perf_counter() - started)
    return best[0] < 10 * best[1]
