"""Measure time and memory of the layers of Table 1 over length and size, and write the record.

    python -m transformer.lab.table_1.record     some minutes on one core

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
    SIZES,
    TIMED,
    measure_memory,
    time_layers,
)

MEMORY_SIZE = 64
SHORTEST = 64


def main() -> None:
    """Make the record."""
    output = parser(__doc__, RECORD).parse_args().output
    torch.set_num_threads(1)
    torch.manual_seed(0)
    recording, memory = Recording(output, "transformer.lab.table_1.record", keep=False), {}
    for name, (make, longest) in MEASURED.items():
        lengths = [SHORTEST * 2**power for power in range(20) if SHORTEST * 2**power <= longest]
        memory[name] = dict(lengths=lengths) | measure_memory(make, lengths, MEMORY_SIZE)
        recording.say(f"memory, {name}")
    grids = []
    for repeat in range(REPEATS):
        grids.append(time_layers(TIMED, LENGTHS, SIZES, repeats=1))
        recording.say(f"time, repeat {repeat}")
    seconds = {name: np.concatenate([grid[name] for grid in grids]) for name in TIMED}
    recording.content |= dict(
        lengths=list(LENGTHS),
        sizes=list(SIZES),
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
