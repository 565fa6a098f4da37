"""Time of three layers with one thread and with two, by the clock: it needs two idle cores."""

from pathlib import Path
from typing import Any

import torch

from transformer_book.studies.layer_types.study import TIMED, plain, time_threads
from transformer_book.studies.recording import Recording

RECORD = Path(__file__).parent / "threads.json"
HEADING: dict[str, Any] = {}
LAYERS = ("self-attention", "recurrent", "GRU")
LENGTHS, SIZE, THREADS = (256, 1024), 512, (1, 2)


def fill(recording: Recording) -> None:
    """Time the layers."""
    content = recording.content
    if "seconds" not in content:
        torch.manual_seed(0)
        timed = {name: TIMED[name] for name in LAYERS}
        content |= dict(lengths=list(LENGTHS), size=SIZE, threads=list(THREADS))
        content["seconds"] = plain(time_threads(timed, LENGTHS, SIZE, THREADS))
        recording.save("one thread and two")
