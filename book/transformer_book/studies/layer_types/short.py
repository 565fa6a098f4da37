"""Time of the layers of Table 1 on sentences as long as the paper's, up to its size."""

from pathlib import Path
from typing import Any

import numpy as np
import torch

from transformer_book.studies.layer_types.study import MEMORY_SIZE, TIMED, plain, time_layers
from transformer_book.studies.recording import Recording

RECORD = Path(__file__).parent / "short.json"
HEADING: dict[str, Any] = {}
LENGTHS = (8, 12, 16, 20, 25, 32, 48, 64)
SIZES = (64, 256, 512)
REPEATS = 15
#: Number of sentences, sizes, and whether with a backward pass.
PASSES = {
    "seconds": (1, SIZES, False),
    "32 sentences, forward": (32, SIZES[-1:], False),
    "32 sentences, forward and backward": (32, SIZES[-1:], True),
}
LAYERS = ("self-attention", "self-attention, fused", "recurrent", "GRU", "LSTM")


def fill(recording: Recording) -> None:
    """Time all passes in turn, so that a busy spell of the machine affects all of them."""
    content = recording.content
    if "seconds" in content:
        return
    torch.manual_seed(0)
    timed = {name: TIMED[name] for name in LAYERS}
    found: dict[str, list[dict[str, np.ndarray]]] = {name: [] for name in PASSES}
    for _ in range(REPEATS):
        for name, (batch, sizes, backward) in PASSES.items():
            found[name].append(time_layers(timed, LENGTHS, sizes, 1, batch, backward))
    passes = {
        name: plain({layer: np.concatenate([grid[layer] for grid in grids]) for layer in timed})
        for name, grids in found.items()
    }
    content |= dict(
        lengths=list(LENGTHS),
        sizes=list(SIZES),
        seconds=passes.pop("seconds"),
        passes=passes,
        memory_size=MEMORY_SIZE,
        memory={},
    )
    recording.save("all layers")
