"""Time and memory of the layers of Table 1 over length and size, measured and recorded."""

import time
from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from transformer.recipes.record import read_record
from transformer_book.studies.layer_types.layer_types import ROWS, SelfAttention
from transformer_book.studies.layer_types.operations import peak_memory
from transformer_book.studies.layer_types.reach import Recurrence
from transformer_book.studies.layer_types.scaling_fit import crossover
from transformer_book.studies.recording import Recording

RECORD = Path(__file__).parent / "record.json"

LENGTHS = tuple(2**power for power in range(5, 14))
SIZES = tuple(2**power for power in range(4, 10))
REPEATS = 5

Make = Callable[[int], nn.Module]

# Timed: every layer type of the table, fused attention, and the two recurrent layers that were
# used in translators.
TIMED: dict[str, Make] = {name: row.make for name, row in ROWS.items()} | {
    "self-attention, fused": lambda d_model: SelfAttention(d_model, fused=True),
    "GRU": lambda d_model: Recurrence(nn.GRU, d_model),
    "LSTM": lambda d_model: Recurrence(nn.LSTM, d_model),
}

# Layers whose memory is measured, and the largest length.
MEASURED: dict[str, tuple[Make, int]] = {
    "attention, written out": (SelfAttention, 4096),
    "attention, written out, 8 heads": (lambda d: SelfAttention(d, num_heads=8), 2048),
    "attention, fused": (lambda d: SelfAttention(d, fused=True), 8192),
    "attention, fused, 8 heads": (lambda d: SelfAttention(d, fused=True, num_heads=8), 8192),
    "attention, restricted": (ROWS["self-attention, restricted"].make, 4096),
    "recurrent": (ROWS["recurrent"].make, 4096),
    "convolution": (ROWS["convolution, contiguous"].make, 4096),
}

#: Least seconds of one timing, over as many calls as necessary.
_LONG_ENOUGH = 0.004


def call_seconds(
    layer: nn.Module,
    x: Tensor,
    clock: Callable[[], float] = time.process_time,
    backward: bool = False,
) -> float:
    """Time a pass, by default in CPU seconds, which other programs hardly affect."""

    def call() -> None:
        y = layer(x)
        if backward:
            y.sum().backward()

    with torch.set_grad_enabled(backward):
        call()
        calls, started = 0, clock()
        while True:
            call()
            calls += 1
            passed = clock() - started
            if passed >= _LONG_ENOUGH:
                return passed / calls


def time_layers(
    makes: dict[str, Make],
    lengths: Sequence[int],
    sizes: Sequence[int],
    repeats: int = REPEATS,
    batch: int = 1,
    backward: bool = False,
) -> dict[str, np.ndarray]:
    """Time the forward pass of layers, alternating within each repeat, over lengths and sizes."""
    seconds = {name: np.empty((repeats, len(sizes), len(lengths))) for name in makes}
    for repeat in range(repeats):
        for row, d_model in enumerate(sizes):
            layers = {name: make(d_model) for name, make in makes.items()}
            for column, length in enumerate(lengths):
                x = torch.randn(batch, length, d_model, requires_grad=backward)
                for name, layer in layers.items():
                    found = call_seconds(layer, x, backward=backward)
                    seconds[name][repeat, row, column] = found
    return seconds


def time_threads(
    makes: dict[str, Make],
    lengths: Sequence[int],
    d_model: int,
    threads: Sequence[int] = (1, 2),
    repeats: int = 15,
) -> dict[str, np.ndarray]:
    """Time the forward pass of layers for one sequence by the clock, alternating thread counts."""
    before = torch.get_num_threads()
    layers = {name: make(d_model) for name, make in makes.items()}
    seconds = {name: np.empty((repeats, len(threads), len(lengths))) for name in makes}
    try:
        for repeat, (column, length) in product(range(repeats), enumerate(lengths)):
            x = torch.randn(1, length, d_model)
            for name, (row, count) in product(layers, enumerate(threads)):
                torch.set_num_threads(count)
                found = call_seconds(layers[name], x, time.perf_counter)
                seconds[name][repeat, row, column] = found
    finally:
        torch.set_num_threads(before)
    return seconds


def allocator_peak(layer: nn.Module, x: Tensor) -> int:
    """Measure the peak of PyTorch's CPU allocator, forward and backward, in bytes."""
    x = x.detach().requires_grad_()
    layer.zero_grad(set_to_none=True)
    with (
        torch.enable_grad(),
        profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler,
    ):
        layer(x).sum().backward()
    events = profiler.profiler.kineto_results.events()
    changes = sorted((e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]")
    return int(max(np.cumsum([change for _, change in changes])))


def measure_memory(layer: Make, lengths: Sequence[int], d_model: int) -> dict[str, list[int]]:
    """Measure the peak memory of a training pass in bytes over lengths, by both methods."""
    found: dict[str, list[int]] = dict(tensors=[], allocator=[])
    module = layer(d_model)
    for length in lengths:
        x = torch.randn(1, length, d_model)
        found["tensors"].append(peak_memory(module, x))
        found["allocator"].append(allocator_peak(module, x))
    return found


class Study:
    """The recorded measurements."""

    def __init__(self, path: Path | str = RECORD):
        self.record: dict[str, Any] = read_record(path)
        self.lengths: list[int] = self.record["lengths"]
        self.sizes: list[int] = self.record["sizes"]
        self.seconds = {
            name: np.array(values) for name, values in self.record["seconds"].items()
        }  # (repeats, sizes, lengths) each
        self.memory: dict[str, dict[str, list[int]]] = self.record["memory"]

    def over_lengths(self, name: str, d_model: int) -> np.ndarray:
        """Return the seconds of a layer at one size, (repeats, lengths)."""
        return self.seconds[name][:, self.sizes.index(d_model)]

    def over_sizes(self, name: str, length: int) -> np.ndarray:
        """Return the seconds of a layer at one length, (repeats, sizes)."""
        return self.seconds[name][:, :, self.lengths.index(length)]

    def crossovers(self, first: str, second: str) -> list[list[float | None]]:
        """Find the length above which one layer takes longer than another."""
        found = []
        for d_model in self.sizes:
            pairs = zip(
                *(self.over_lengths(name, d_model) for name in (first, second)), strict=True
            )
            found.append([crossover(self.lengths, one, other) for one, other in pairs])
        return found


HEADING: dict[str, Any] = {}
MEMORY_SIZE = SHORTEST = 64


def fill(recording: Recording) -> None:
    """Measure memory, and time on one thread over lengths and sizes."""
    content = recording.content
    if "seconds" in content:
        return
    torch.manual_seed(0)
    memory = {}
    for name, (make, longest) in MEASURED.items():
        grown = [SHORTEST * 2**power for power in range(20) if SHORTEST * 2**power <= longest]
        memory[name] = dict(lengths=grown) | measure_memory(make, grown, MEMORY_SIZE)
    seconds = time_layers(TIMED, LENGTHS, SIZES)
    content |= dict(
        lengths=list(LENGTHS),
        sizes=list(SIZES),
        seconds=plain(seconds),
        passes={},
        memory_size=MEMORY_SIZE,
        memory=memory,
    )
    recording.save("all layers")


def plain(seconds: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return three-dimensional arrays as lists of numbers with four digits."""
    return {
        name: [[[float(f"{s:.4g}") for s in row] for row in grid] for grid in values]
        for name, values in seconds.items()
    }
