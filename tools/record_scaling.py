"""Measures time and memory of the layers of Table 1 over length and size, and writes the record.

    python tools/record_scaling.py                 all of it, some minutes of one core
    python tools/record_scaling.py --output FILE   and write it elsewhere

Time is this process's own CPU time on one thread. Other work on the machine makes it somewhat
longer all the same, since caches are shared; the repeats show by how much.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch

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
from transformer.recipes.record import describe_environment, write_record

MEMORY_SIZE = 64
SHORTEST = 64


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=RECORD)
    output = parser.parse_args().output

    torch.set_num_threads(1)
    torch.manual_seed(0)
    started = time.process_time()
    memory = {}
    for name, (make, longest) in MEASURED.items():
        lengths = [SHORTEST * 2**power for power in range(20) if SHORTEST * 2**power <= longest]
        memory[name] = dict(lengths=lengths) | measure_memory(make, lengths, MEMORY_SIZE)
        print(f"memory, {name}: {time.process_time() - started:.0f} s of CPU so far", flush=True)
    grids = []
    for repeat in range(REPEATS):
        grids.append(time_layers(TIMED, LENGTHS, SIZES, repeats=1))
        print(
            f"time, repeat {repeat}: {time.process_time() - started:.0f} s of CPU so far",
            flush=True,
        )
    seconds = {name: np.concatenate([grid[name] for grid in grids]) for name in TIMED}
    record = dict(
        command="python tools/record_scaling.py",
        environment=describe_environment(),
        cpu_seconds=round(time.process_time() - started),
        lengths=list(LENGTHS),
        sizes=list(SIZES),
        seconds={
            name: [[[float(f"{s:.4g}") for s in row] for row in grid] for grid in values]
            for name, values in seconds.items()
        },
        memory_size=MEMORY_SIZE,
        memory=memory,
    )
    write_record(output, record)
    print(f"{output}: {record['cpu_seconds']} s of CPU")


if __name__ == "__main__":
    main()
