"""Time and memory of the layers of Table 1 over length and size, measured and recorded.

Paper: section 4, Table 1
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from transformer.lab.table_1.layer_types import ROWS, SelfAttention
from transformer.lab.table_1.operations import peak_memory
from transformer.lab.table_1.reach import Recurrence
from transformer.lab.table_1.scaling_fit import crossover
from transformer.recipes.record import read_record

#: Where the measurements are kept; ``tools/record_scaling.py`` makes them again.
RECORD = Path(__file__).parent / "scaling.json"

LENGTHS = tuple(2**power for power in range(5, 14))
SIZES = tuple(2**power for power in range(4, 10))
REPEATS = 5

Make = Callable[[int], nn.Module]

# What is timed: every kind of layer of the table, attention in one fused kernel, and the two
# recurrent layers that translators used in place of the plain one.
TIMED: dict[str, Make] = {name: row.make for name, row in ROWS.items()} | {
    "self-attention, fused": lambda d_model: SelfAttention(d_model, fused=True),
    "GRU": lambda d_model: Recurrence(nn.GRU, d_model),
    "LSTM": lambda d_model: Recurrence(nn.LSTM, d_model),
}

# What the memory is measured of, and up to which length.
MEASURED: dict[str, tuple[Make, int]] = {
    "attention, written out": (SelfAttention, 4096),
    "attention, written out, 8 heads": (lambda d: SelfAttention(d, num_heads=8), 2048),
    "attention, fused": (lambda d: SelfAttention(d, fused=True), 8192),
    "attention, fused, 8 heads": (lambda d: SelfAttention(d, fused=True, num_heads=8), 8192),
    "attention, restricted": (ROWS["self-attention, restricted"].make, 4096),
    "recurrent": (ROWS["recurrent"].make, 4096),
    "convolution": (ROWS["convolution, contiguous"].make, 4096),
}

#: Seconds of CPU that one timing takes at least, in as many calls as that needs.
_LONG_ENOUGH = 0.004


def cpu_seconds(layer: nn.Module, x: Tensor) -> float:
    """Time a forward pass in seconds of this process's CPU, so that other programs count little.

    Args:
        layer: what to run.
        x: its input, of any shape that it takes.

    Returns:
        The mean of as many calls as take some milliseconds, after one that is not timed.

    Paper: section 4, Table 1
    """
    with torch.no_grad():
        layer(x)
        calls, started = 0, time.process_time()
        while True:
            layer(x)
            calls += 1
            passed = time.process_time() - started
            if passed >= _LONG_ENOUGH:
                return passed / calls


def time_layers(
    makes: dict[str, Make], lengths: Sequence[int], sizes: Sequence[int], repeats: int = REPEATS
) -> dict[str, np.ndarray]:
    """Time the forward pass of layers for one sequence, over a grid of lengths and sizes.

    The layers take turns, and the whole grid is gone through once for each repeat. So a busy spell
    of the machine meets all layers and not one.

    Args:
        makes: what makes each layer from its size d.
        lengths: numbers of positions n.
        sizes: sizes of a vector d.
        repeats: how often to measure.

    Returns:
        Seconds of CPU for each name, (repeats, sizes, lengths).

    Paper: section 4, Table 1
    """
    seconds = {name: np.empty((repeats, len(sizes), len(lengths))) for name in makes}
    for repeat in range(repeats):
        for row, d_model in enumerate(sizes):
            layers = {name: make(d_model) for name, make in makes.items()}
            for column, length in enumerate(lengths):
                x = torch.randn(1, length, d_model)
                for name, layer in layers.items():
                    seconds[name][repeat, row, column] = cpu_seconds(layer, x)
    return seconds


def allocator_peak(layer: nn.Module, x: Tensor) -> int:
    """Measure the most bytes that PyTorch's allocator gave out during a forward and backward pass.

    Unlike :func:`~transformer.lab.table_1.operations.peak_memory`, this sees what an operation
    borrows for itself. It needs the profiler, which writes lines of its own to the terminal.

    Args:
        layer: what to run, on a CPU.
        x: its input, of any shape that it takes.
    """
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


def measure_memory(
    layer: Make, lengths: Sequence[int], d_model: int, allocator: bool = True
) -> dict[str, list[int]]:
    """Measure the peak of memory of a training pass over lengths, by both methods.

    Args:
        layer: makes the layer from its size.
        lengths: numbers of positions.
        d_model: size of a vector.
        allocator: also ask the allocator.

    Returns:
        Bytes for each length: "tensors" and, if asked for, "allocator".
    """
    found: dict[str, list[int]] = dict(tensors=[])
    module = layer(d_model)
    for length in lengths:
        x = torch.randn(1, length, d_model)
        found["tensors"].append(peak_memory(module, x))
        if allocator:
            found.setdefault("allocator", []).append(allocator_peak(module, x))
    return found


class Study:
    """The recorded measurements.

    Args:
        path: where they are.

    Raises:
        FileNotFoundError: if there is no record.

    Paper: section 4, Table 1
    """

    def __init__(self, path: Path | str = RECORD):
        self.record: dict[str, Any] = read_record(path)
        self.lengths: list[int] = self.record["lengths"]
        self.sizes: list[int] = self.record["sizes"]
        self.seconds = {
            name: np.array(values) for name, values in self.record["seconds"].items()
        }  # (repeats, sizes, lengths) each
        self.memory: dict[str, dict[str, list[int]]] = self.record["memory"]

    def over_lengths(self, name: str, d_model: int) -> np.ndarray:
        """Return the seconds of a layer at one size, (repeats, lengths).

        Paper: section 4, Table 1
        """
        return self.seconds[name][:, self.sizes.index(d_model)]

    def over_sizes(self, name: str, length: int) -> np.ndarray:
        """Return the seconds of a layer at one length, (repeats, sizes).

        Paper: section 4, Table 1
        """
        return self.seconds[name][:, :, self.lengths.index(length)]

    def crossovers(self, first: str, second: str) -> list[list[float | None]]:
        """Find from which length on one layer takes longer than another, in each repeat.

        Args:
            first: name of a layer.
            second: name of another.

        Returns:
            For each size the lengths, one for each repeat, as
            :func:`~transformer.lab.table_1.scaling_fit.crossover` gives them.

        Paper: section 4 (n smaller than d)
        """
        return [
            [
                crossover(self.lengths, one, other)
                for one, other in zip(
                    self.over_lengths(first, d_model),
                    self.over_lengths(second, d_model),
                    strict=True,
                )
            ]
            for d_model in self.sizes
        ]
