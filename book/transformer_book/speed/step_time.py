"""Where the time of a training step goes, as PyTorch's profiler records it.

A backward operation has the number of its forward operation, so both count as the same kind.
"""

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from tempfile import TemporaryDirectory

import torch
from torch.autograd.profiler_util import FunctionEvent
from torch.profiler import ProfilerActivity, profile

from transformer.data.batching import TokenBatches
from transformer.inference.device import device_label
from transformer.recipes.architectures import ModelConfig, build_model
from transformer.training.config import Precision, TrainingConfig
from transformer.training.stream import step_batches
from transformer.training.trainer import Trainer

#: Kinds of operations, in the order of the table; "nothing at work" is Python or an idle GPU.
KINDS = (
    "matrix products", "attention core", "vocabulary loss", "dropout", "layer norm", "optimizer",
    "copies and padding", "fused by the compiler", "the rest", "nothing at work",
)  # fmt: skip

# The first rule that fits decides. "own" looks at the operation or kernel itself, "any" also at
# the operations that it is part of, and at those of the forward pass that it is the gradient of.
_RULES = [
    ("any", r"^Optimizer\.|clip_grad|foreach_norm", "optimizer"),
    ("any", r"scaled_?dot_?product|fmha|flash|efficient_attention", "attention core"),
    ("own", r"^triton_", "fused by the compiler"),
    ("own", r"^aten::_?(mm|addmm|bmm|baddbmm|addmv|mv)\b|_linear_pointwise$", "matrix products"),
    ("own", r"gemm|cutlass|nvjet|xmma|cublas|splitk", "matrix products"),
    ("any", r"dropout", "dropout"),
    ("any", r"(layer|rms)_?norm", "layer norm"),
    ("any", r"ProjectedCrossEntropy", "vocabulary loss"),
    ("own", r"^aten::(copy_|clone|contiguous|cat|stack|fill_|zero_|zeros|new_zeros|empty|index|to\b"
            r"|_to_copy|slice_backward|constant_pad|_?pack|_?pad)|^_(un)?pad|^_pack|memcpy|memset",
     "copies and padding"),
]  # fmt: skip


@dataclass(frozen=True)
class StepTime:
    """Where the time of a training step goes."""

    device: str
    precision: Precision
    steps: int  #: number of profiled steps
    seconds_per_step: float  #: without the profiler; CPU seconds where a single thread works
    target_tokens_per_step: float  #: without padding
    kinds: dict[str, float]  #: profiled seconds per step of those of :data:`KINDS` that took time

    @property
    def shares(self) -> dict[str, float]:
        """Share of each kind, largest first; they add up to 1."""
        total, ordered = sum(self.kinds.values()), sorted(self.kinds.items(), key=lambda i: -i[1])
        return {kind: seconds / total for kind, seconds in ordered}


def measure_step_time(
    model: ModelConfig, batches: TokenBatches, training: TrainingConfig, steps: int = 3
) -> StepTime:
    """Train two steps to warm up, time ``steps`` more, and profile as many again."""
    torch.manual_seed(training.seed)
    with TemporaryDirectory() as folder:
        trainer = Trainer(build_model(model), batches, training, folder, progress=False)
        device = trainer.accelerator.device
        on_gpu = device.type == "cuda"
        stream, tokens = step_batches(batches, training.accumulate), []

        def train(number: int) -> None:
            for step in islice(stream, number):
                trainer._train_step(step.batches, step.target_tokens)
                tokens.append(step.target_tokens)
            if on_gpu:
                torch.cuda.synchronize(device)

        train(2)
        alone = not on_gpu and torch.get_num_threads() == 1
        clock = time.process_time if alone else time.perf_counter
        started = clock()
        train(steps)
        timed, started = clock() - started, time.perf_counter()
        activities = [ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * on_gpu
        with profile(activities=activities) as profiler:
            train(steps)
        profiled = time.perf_counter() - started
    # The profiler delays the start of a GPU's kernels, but does not lengthen them.
    seconds = seconds_by_kind(profiler.events() or [], timed if on_gpu else profiled, on_gpu)
    kinds = {kind: spent / steps for kind, spent in seconds.items() if spent > 0}
    mean = sum(tokens[2 : 2 + steps]) / steps  # of the timed steps
    return StepTime(device_label(device), training.precision, steps, timed / steps, mean, kinds)


def seconds_by_kind(
    events: Iterable[FunctionEvent], elapsed: float, on_gpu: bool
) -> dict[str, float]:
    """Add up the seconds of CPU operations (without those that they call) or of GPU kernels.

    The rest of the ``elapsed`` seconds is "nothing at work".
    """
    events, found = list(events), dict.fromkeys(KINDS, 0.0)
    operations = [event for event in events if event.device_type.name == "CPU"]
    forward: dict[int, FunctionEvent] = {}  # the last operation of a number made the graph's node
    for event in sorted(operations, key=lambda event: event.time_range.start):
        if event.sequence_nr >= 0 and _gradient(event) is None:
            forward[event.sequence_nr] = event
    started = set()  # kernels by name
    for event in operations:
        node = _gradient(event)
        origin = node and forward.get(node.sequence_nr)
        names = [above.name for one in (event, origin) for above in _upwards(one)]
        if not on_gpu:
            found[kind_of(names)] += event.self_cpu_time_total / 1e6
        for kernel in event.kernels if on_gpu else ():
            found[kind_of([kernel.name, *names])] += kernel.duration / 1e6
            started.add(kernel.name)
    # Kernels that no operation started, without the named ranges that are shown on the GPU too.
    known = started | {event.name for event in operations if not event.name.startswith("triton_")}
    for event in events:
        if on_gpu and event.device_type.name == "CUDA" and event.name not in known:
            found[kind_of([event.name])] += event.time_range.elapsed_us() / 1e6
    found["nothing at work"] = max(0.0, elapsed - sum(found.values()))
    return found


def kind_of(names: Sequence[str]) -> str:
    """Return the kind of an operation from its name and the names of what it belongs to."""
    for scope, pattern, kind in _RULES:
        looked_at = names if scope == "any" else names[:1]
        if any(re.search(pattern, name, re.IGNORECASE) for name in looked_at):
            return kind
    return "the rest"


def _gradient(event: FunctionEvent) -> FunctionEvent | None:
    """Return the node of the backward pass that an operation belongs to."""
    engine = "autograd::engine::evaluate_function"
    return next((one for one in _upwards(event) if one.name.startswith(engine)), None)


def _upwards(event: FunctionEvent | None) -> Iterator[FunctionEvent]:
    while event is not None:
        yield event
        event = event.cpu_parent
