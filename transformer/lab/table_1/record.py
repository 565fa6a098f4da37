"""Measure time and memory of the layers of Table 1 over length and size, and write the record.

    python -m transformer.lab.table_1.record             some minutes on one core
    python -m transformer.lab.table_1.record --short     sentences of 8 to 64 tokens, half a minute

Time is this process's CPU time on one thread. Other programs on the machine make it a little
longer, because caches are shared; the repeats show by how much.
"""

import numpy as np
import torch

from transformer.lab.recording import Recording, parser
from transformer.lab.table_1.study import (
    LENGTHS,
    MEASURED,
    RECORD,
    REPEATS,
    SHORT_LENGTHS,
    SHORT_RECORD,
    SHORT_REPEATS,
    SHORT_SIZES,
    SHORT_TIMED,
    SIZES,
    TIMED,
    measure_memory,
    time_layers,
)

MEMORY_SIZE = 64
SHORTEST = 64


def main() -> None:
    """Make the record."""
    options = parser(__doc__, None)
    options.add_argument("--short", action="store_true", help="time short sentences only")
    chosen = options.parse_args()
    short = chosen.short
    torch.set_num_threads(1)
    torch.manual_seed(0)
    output = chosen.output or (SHORT_RECORD if short else RECORD)
    module, memory = "transformer.lab.table_1.record", {}
    recording = Recording(output, module, ["--short"] * short, keep=False)
    timed = {name: TIMED[name] for name in SHORT_TIMED} if short else TIMED
    lengths, sizes = (SHORT_LENGTHS, SHORT_SIZES) if short else (LENGTHS, SIZES)
    for name, (make, longest) in () if short else MEASURED.items():
        grown = [SHORTEST * 2**power for power in range(20) if SHORTEST * 2**power <= longest]
        memory[name] = dict(lengths=grown) | measure_memory(make, grown, MEMORY_SIZE)
        recording.say(f"memory, {name}")
    grids = []
    for repeat in range(SHORT_REPEATS if short else REPEATS):
        grids.append(time_layers(timed, lengths, sizes, repeats=1))
        recording.say(f"time, repeat {repeat}")
    seconds = {name: np.concatenate([grid[name] for grid in grids]) for name in timed}
    recording.content |= dict(
        lengths=list(lengths),
        sizes=list(sizes),
        seconds={
            name: [[[float(f"{s:.4g}") for s in row] for row in grid] for grid in values]
            for name, values in seconds.items()
        },
        memory_size=MEMORY_SIZE,
        memory=memory,
    )
    recording.save(str(output))


if __name__ == "__main__":
    main()
