"""Measure time and memory of the layers of Table 1 over length and size, and write the record.

    python -m transformer_book.studies.layer_types.record             some minutes on one core
    python -m transformer_book.studies.layer_types.record --short     sentences of 8 to 64 tokens,
    two minutes
    python -m transformer_book.studies.layer_types.record --threads   one thread and two, half a
    minute

Time is this process's CPU time on one thread. Other programs on the machine make it a little
longer, because caches are shared; the repeats show by how much. ``--threads`` measures by the
clock, so it needs two cores that are idle.
"""

from typing import Any

import numpy as np
import torch

from transformer_book.studies.layer_types.study import (
    LENGTHS,
    MEASURED,
    RECORD,
    REPEATS,
    SHORT_LENGTHS,
    SHORT_PASSES,
    SHORT_RECORD,
    SHORT_REPEATS,
    SHORT_SIZES,
    SHORT_TIMED,
    SIZES,
    THREADS,
    THREADS_LENGTHS,
    THREADS_RECORD,
    THREADS_SIZE,
    THREADS_TIMED,
    TIMED,
    measure_memory,
    time_layers,
    time_threads,
)
from transformer_book.studies.recording import Recording, parser

MEMORY_SIZE = 64
SHORTEST = 64


def main() -> None:
    """Make the record."""
    options = parser(__doc__, None)
    kinds = options.add_mutually_exclusive_group()
    kinds.add_argument("--short", action="store_true", help="time short sentences only")
    kinds.add_argument("--threads", action="store_true", help="compare one thread with two")
    chosen = options.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    kind = "--short" if chosen.short else "--threads" if chosen.threads else ""
    usual = {"": RECORD, "--short": SHORT_RECORD, "--threads": THREADS_RECORD}[kind]
    module = "transformer_book.studies.layer_types.record"
    recording = Recording(chosen.output or usual, module, [kind] * bool(kind), keep=False)
    if chosen.threads:
        record_threads(recording)
    else:
        record_grid(recording, chosen.short)
    recording.save(str(recording.path))


def record_grid(recording: Recording, short: bool) -> None:
    """Measure memory, and time on one thread over lengths and sizes; if ``short``, time only."""
    memory = {}
    timed = {name: TIMED[name] for name in SHORT_TIMED} if short else TIMED
    lengths, sizes = (SHORT_LENGTHS, SHORT_SIZES) if short else (LENGTHS, SIZES)
    for name, (make, longest) in () if short else MEASURED.items():
        grown = [SHORTEST * 2**power for power in range(20) if SHORTEST * 2**power <= longest]
        memory[name] = dict(lengths=grown) | measure_memory(make, grown, MEMORY_SIZE)
        recording.say(f"memory, {name}")
    passes = dict(seconds=(1, False)) | (SHORT_PASSES if short else {})
    grids: dict[str, list[dict[str, np.ndarray]]] = {name: [] for name in passes}
    for repeat in range(SHORT_REPEATS if short else REPEATS):
        for name, (batch, backward) in passes.items():
            some = sizes if batch == 1 else sizes[-1:]
            grids[name].append(time_layers(timed, lengths, some, 1, batch, backward))
        recording.say(f"time, repeat {repeat}")
    seconds, *others = (
        plain({name: np.concatenate([grid[name] for grid in found]) for name in timed})
        for found in grids.values()
    )
    recording.content |= dict(
        lengths=list(lengths),
        sizes=list(sizes),
        seconds=seconds,
        passes=dict(zip(SHORT_PASSES, others, strict=short)),
        memory_size=MEMORY_SIZE,
        memory=memory,
    )


def record_threads(recording: Recording) -> None:
    """Measure time by the clock with one thread and with two."""
    timed = {name: TIMED[name] for name in THREADS_TIMED}
    recording.content |= dict(
        lengths=list(THREADS_LENGTHS),
        size=THREADS_SIZE,
        threads=list(THREADS),
        seconds=plain(time_threads(timed, THREADS_LENGTHS, THREADS_SIZE)),
    )


def plain(seconds: dict[str, np.ndarray]) -> dict[str, Any]:
    """Return three-dimensional arrays as lists of numbers with four digits."""
    return {
        name: [[[float(f"{s:.4g}") for s in row] for row in grid] for grid in values]
        for name, values in seconds.items()
    }


if __name__ == "__main__":
    main()
