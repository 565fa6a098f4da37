"""Time of self-attention and of recurrent layers on sentences as long as the paper's.

    python -m transformer_book.studies.record layer_types --output times-NAME.json

times the processor that it runs on, or the GPU if there is one. The chapter reads every file
``times-*.json`` of this folder.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from transformer.recipes.record import read_record
from transformer_book.studies.layer_types.reach import Recurrence, SelfAttention
from transformer_book.studies.recording import Recording

FOLDER = Path(__file__).parent
RECORD = FOLDER / "times-amd-epyc.json"
LENGTHS = (8, 12, 16, 20, 25, 32, 48, 64)
SIZES = (64, 256, 512)
REPEATS = 15
HEADING: dict[str, Any] = dict(lengths=list(LENGTHS), sizes=list(SIZES))
LAYERS: dict[str, Callable[[int], nn.Module]] = {
    "self-attention": SelfAttention,
    "recurrent": lambda d_model: Recurrence(nn.RNN, d_model),
    "GRU": lambda d_model: Recurrence(nn.GRU, d_model),
    "LSTM": lambda d_model: Recurrence(nn.LSTM, d_model),
}
#: Number of sentences, sizes, and whether with a backward pass.
PASSES = {
    "seconds": (1, SIZES, False),
    "32 sentences, forward": (32, SIZES[-1:], False),
    "32 sentences, forward and backward": (32, SIZES[-1:], True),
}
_LONG_ENOUGH = 0.004  # seconds of one timing, over as many calls as necessary


def call_seconds(layer: nn.Module, x: Tensor, backward: bool = False) -> float:
    """Time a pass in CPU seconds, which other programs hardly affect; on a GPU by the clock."""
    clock = _gpu_clock if x.is_cuda else time.process_time
    with torch.set_grad_enabled(backward):
        calls, started = -1, 0.0  # the first call isn't counted
        while calls < 1 or clock() - started < _LONG_ENOUGH:
            y = layer(x)
            if backward:
                y.sum().backward()
            calls += 1
            started = started if calls else clock()
        return (clock() - started) / calls


def _gpu_clock() -> float:
    torch.cuda.synchronize()
    return time.perf_counter()


def time_layers(batch: int, sizes: tuple[int, ...], backward: bool) -> dict[str, list[Any]]:
    """Time every layer, one after the other, over sizes and lengths: (sizes, lengths) each."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    seconds: dict[str, list[Any]] = {name: [[] for _ in sizes] for name in LAYERS}
    for row, d_model in enumerate(sizes):
        layers = {name: make(d_model).to(device) for name, make in LAYERS.items()}
        for length in LENGTHS:
            x = torch.randn(batch, length, d_model, device=device, requires_grad=backward)
            for name, layer in layers.items():
                seconds[name][row].append(float(f"{call_seconds(layer, x, backward):.4g}"))
    return seconds


def fill(recording: Recording) -> None:
    """Time all passes in turn, so that a busy spell of the machine affects all of them."""
    content = recording.content
    if "seconds" in content:
        return
    torch.manual_seed(0)
    found: dict[str, dict[str, Any]] = {name: {each: [] for each in LAYERS} for name in PASSES}
    for _ in range(REPEATS):
        for name, options in PASSES.items():
            for layer, grid in time_layers(*options).items():
                found[name][layer].append(grid)
    content |= dict(capability=torch.backends.cpu.get_cpu_capability())
    content |= dict(seconds=found.pop("seconds"), passes=found)
    recording.save("all layers")


def ratios(size: int = SIZES[-1]) -> Iterator[tuple[str, str, str, np.ndarray]]:
    """Yield machine, pass, rival and attention's time over the rival's: (repeats, lengths)."""
    for path in sorted(FOLDER.glob("times-*.json")):
        record = read_record(path)
        hardware = record["environment"]["hardware"]
        machine = hardware["cpu"] if hardware["device"] == "cpu" else hardware["device"]
        passes = {"one sentence": record["seconds"], **record["passes"]}
        for name, seconds in passes.items():
            row = record["sizes"].index(size) if name == "one sentence" else 0
            times = {layer: np.array(values)[:, row] for layer, values in seconds.items()}
            for rival in ("recurrent", "GRU", "LSTM"):
                yield machine, name, rival, times["self-attention"] / times[rival]
