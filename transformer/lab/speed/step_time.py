"""Where the time of a training step goes: products, attention, loss, dropout, and waiting.

PyTorch's profiler notes every operation of a few steps of the very loop that trains. An operation
of the backward pass bears the number of the forward operation that asked for it, so that both count
as the same kind: the model itself needs no marks.

Paper: section 5.2 (it gives the seconds of a step, and not what they go into)
"""

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import count
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile

from transformer.data.batching import TokenBatches
from transformer.inference.device import device_label
from transformer.recipes.architectures import ModelConfig, build_model
from transformer.training.config import Precision, TrainingConfig
from transformer.training.stream import step_batches
from transformer.training.trainer import Trainer

#: What an operation can be, in the order of the tables. "fused by the compiler" are kernels of
#: ``torch.compile`` that do several of the others at once; "nothing at work" is Python between two
#: operations, or a GPU without a kernel.
KINDS = (
    "matrix products",
    "attention core",
    "vocabulary loss",
    "dropout",
    "layer norm",
    "optimizer",
    "copies and padding",
    "fused by the compiler",
    "the rest",
    "nothing at work",
)

# The first that fits decides. "own" is the operation or kernel itself, "any" also each that it is
# part of, and those of the forward pass that it is the gradient of.
_RULES = [
    ("any", r"^Optimizer\.|clip_grad|foreach_norm", "optimizer"),
    ("any", r"scaled_?dot_?product|fmha|flash|efficient_attention", "attention core"),
    ("own", r"^triton_", "fused by the compiler"),
    ("own", r"^aten::_?(mm|addmm|bmm|baddbmm|addmv|mv)\b|_linear_pointwise$", "matrix products"),
    ("own", r"gemm|cutlass|nvjet|xmma|cublas|splitk", "matrix products"),
    ("any", r"dropout", "dropout"),
    ("any", r"(layer|rms)_?norm", "layer norm"),
    ("any", r"ProjectedCrossEntropy", "vocabulary loss"),
    (
        "own",
        r"^aten::(copy_|clone|contiguous|cat|stack|fill_|zero_|zeros|new_zeros|empty|index|to\b"
        r"|_to_copy|slice_backward|constant_pad|_?pack|_?pad)|^_(un)?pad|^_pack|memcpy|memset",
        "copies and padding",
    ),
]


@dataclass(frozen=True)
class StepTime:
    """Where the time of a training step goes.

    Args:
        device: its name.
        precision: of the products.
        steps: that were profiled.
        seconds_per_step: without the profiler: of the processor if one thread of a CPU does it
            all, which others on the machine hardly change; by the clock if not.
        target_tokens_per_step: real ones, of the profiled steps.
        kinds: seconds of each kind in a step, as profiled, by the names of :data:`KINDS`; what
            took no time is left out.

    Paper: section 5.2
    """

    device: str
    precision: Precision
    steps: int
    seconds_per_step: float
    target_tokens_per_step: float
    kinds: dict[str, float]

    @property
    def shares(self) -> dict[str, float]:
        """Of each kind, in [0, 1], the largest first; they add up to 1."""
        total = sum(self.kinds.values())
        return {
            kind: seconds / total
            for kind, seconds in sorted(self.kinds.items(), key=lambda item: -item[1])
        }

    def to_record(self) -> dict[str, Any]:
        """All that was measured, as plain values."""
        return asdict(self)


def measure_step_time(
    model: ModelConfig,
    batches: TokenBatches,
    training: TrainingConfig,
    steps: int = 3,
    warmup: int = 2,
) -> StepTime:
    """Train a few steps and say where their time goes.

    Args:
        model: the configuration, such as that of a preset.
        batches: the training pairs.
        training: the recipe.
        steps: so many are timed, and as many more are profiled.
        warmup: steps before those, for compilation and caches.

    Raises:
        ValueError: if a number of steps is not positive.
        InterruptedError: if a signal ended it early.

    Paper: section 5.2
    """
    for name, value in (("steps", steps), ("warmup", warmup)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
    total = warmup + 2 * steps + 1
    config = replace(
        training, max_steps=total, log_every=total, validate_every=total, save_every=total
    )
    torch.manual_seed(config.seed)
    with TemporaryDirectory() as folder:
        trainer = Trainer(build_model(model), batches, config, folder, progress=False)
        device = trainer.accelerator.device
        stages = _Stages(device, warmup, steps)
        calls = count()

        def before_forward(*_: Any) -> None:
            step, part = divmod(next(calls), config.accumulate)
            if part == 0:
                stages.begin(step)

        trainer.loss.register_forward_pre_hook(before_forward)
        if not trainer.fit():
            raise InterruptedError("the measurement was interrupted")
    stream = step_batches(batches, config.accumulate)
    tokens = [next(stream).target_tokens for _ in range(total)][warmup + steps : -1]
    kinds = {kind: seconds / steps for kind, seconds in stages.seconds().items() if seconds > 0}
    return StepTime(
        device=device_label(device),
        precision=config.precision,
        steps=steps,
        seconds_per_step=stages.timed / steps,
        target_tokens_per_step=sum(tokens) / steps,
        kinds=kinds,
    )


class _Stages:
    """Warm up, time without the profiler, then profile."""

    def __init__(self, device: torch.device, warmup: int, steps: int):
        self.device, self.on_gpu = device, device.type == "cuda"
        self.actions: dict[int, Callable[[], None]] = {
            warmup: self._start_clock,
            warmup + steps: self._start_profiler,
            warmup + 2 * steps: self._stop,
        }
        activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * self.on_gpu
        self.profiler = profile(activities=activities)
        self.timed = self.profiled = 0.0

    def begin(self, step: int) -> None:
        """Do what belongs before a step, counted from 0."""
        if step in self.actions:
            if self.on_gpu:
                torch.cuda.synchronize(self.device)
            self.actions[step]()

    def _start_clock(self) -> None:
        self.timed = -self._clock()

    def _start_profiler(self) -> None:
        self.timed += self._clock()
        self.profiler.start()
        self.profiled = -time.perf_counter()

    def _stop(self) -> None:
        self.profiled += time.perf_counter()
        self.profiler.stop()

    def _clock(self) -> float:
        alone = not self.on_gpu and torch.get_num_threads() == 1
        return time.process_time() if alone else time.perf_counter()

    def seconds(self) -> dict[str, float]:
        """Seconds of each kind in all profiled steps."""
        events = self.profiler.events() or []
        if self.on_gpu:
            # A profiled program starts its kernels later; how long they run is as without.
            return kernel_seconds(events, self.timed)
        return operation_seconds(events, self.profiled)


def kind_of(names: Sequence[str]) -> str:
    """Say which of :data:`KINDS` an operation belongs to.

    Args:
        names: of the operation or kernel, of what it is part of, and so on upwards; then of the
            forward operation that it is the gradient of, if it is one.
    """
    for scope, pattern, kind in _RULES:
        looked_at = names if scope == "any" else names[:1]
        if any(re.search(pattern, name, re.IGNORECASE) for name in looked_at):
            return kind
    return "the rest"


def operation_seconds(events: Iterable[FunctionEvent], elapsed: float) -> dict[str, float]:
    """Add up the time that a CPU spent in operations themselves, not in those that they call.

    Args:
        events: what the profiler noted.
        elapsed: seconds that it was on. What no operation accounts for is "nothing at work".

    Returns:
        Seconds by kind.
    """
    operations = [event for event in events if event.device_type.name == "CPU"]
    lines = _Lines(operations)
    found = dict.fromkeys(KINDS, 0.0)
    for event in operations:
        found[kind_of(lines.of(event))] += event.self_cpu_time_total / 1e6
    found["nothing at work"] = max(0.0, elapsed - sum(found.values()))
    return found


def kernel_seconds(events: Iterable[FunctionEvent], elapsed: float) -> dict[str, float]:
    """Add up the time of a GPU's kernels.

    Args:
        events: what the profiler noted.
        elapsed: seconds that the same steps take. When no kernel runs is "nothing at work".

    Returns:
        Seconds by kind.
    """
    events = list(events)
    operations = [event for event in events if event.device_type.name == "CPU"]
    lines = _Lines(operations)
    found = dict.fromkeys(KINDS, 0.0)
    started = set()
    for event in operations:
        for kernel in event.kernels:
            found[kind_of([kernel.name, *lines.of(event)])] += kernel.duration / 1e6
            started.add(kernel.name)
    # A range of the program is shown on the GPU, too, by its name. It is no kernel.
    ranges = {event.name for event in operations if not event.name.startswith("triton_")} - started
    spans = []
    for event in events:
        if event.device_type.name == "CUDA" and event.name not in ranges:
            start, end = event.time_range.start, event.time_range.end
            spans.append((start, end))
            if event.name not in started:  # by an operation that the profiler knows
                found[kind_of([event.name])] += (end - start) / 1e6
    found["nothing at work"] = max(0.0, elapsed - covered(spans) / 1e6)
    return found


def covered(spans: Iterable[tuple[int | float, int | float]]) -> float:
    """Measure what the spans (start, end) cover together, what several cover once."""
    length, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        length += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return length


class _Lines:
    """The names above an operation, and those of the forward operation that it is a gradient of."""

    def __init__(self, operations: Iterable[FunctionEvent]):
        # Of the operations with a number, the last one made the node of the graph.
        self.forward: dict[int, FunctionEvent] = {}
        for event in sorted(operations, key=lambda event: event.time_range.start):
            if event.sequence_nr >= 0 and self._gradient(event) is None:
                self.forward[event.sequence_nr] = event

    def of(self, event: FunctionEvent) -> list[str]:
        names = [one.name for one in self._upwards(event)]
        gradient = self._gradient(event)
        if gradient is not None and gradient.sequence_nr in self.forward:
            names += [one.name for one in self._upwards(self.forward[gradient.sequence_nr])]
        return names

    def _gradient(self, event: FunctionEvent) -> FunctionEvent | None:
        """The node of the backward pass that an operation belongs to."""
        engine = "autograd::engine::evaluate_function"
        return next((one for one in self._upwards(event) if one.name.startswith(engine)), None)

    @staticmethod
    def _upwards(event: FunctionEvent | None) -> list[FunctionEvent]:
        above = []
        while event is not None:
            above.append(event)
            event = event.cpu_parent
        return above
