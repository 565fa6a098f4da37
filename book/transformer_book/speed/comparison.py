"""Speed of several programs on the same work, compared round by round by ``make bench``."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from transformer_book.tables import Table, significant

#: What ``make bench`` writes.
RECORD = Path(__file__).with_name("speed.json")
#: Where the time of a training step goes.
STEP_TIME = RECORD.with_name("step_time.json")


@dataclass(frozen=True)
class Row:
    """One program in one table."""

    name: str
    median: float  #: over the rounds, in units per second (or MiB, for memory)
    ratio: float  #: median over the rounds of the first program's speed divided by this one's
    least: float  #: smallest of these ratios
    most: float  #: largest of them


def summarise(speed: Mapping[str, Sequence[float]]) -> list[dict[str, Any]]:
    """Compare all programs with the first, round by round; return the fields of each row."""
    first, *_ = speed.values()
    rows = []
    for name, values in speed.items():
        ratios = [ours / theirs for ours, theirs in zip(first, values, strict=True)]
        row = Row(
            name, statistics.median(values), statistics.median(ratios), min(ratios), max(ratios)
        )
        rows.append(asdict(row))
    return rows


def speed_table(unit: str, rows: Sequence[Row]) -> Table:
    """Make the table of one comparison with the first row; "MiB" counts memory, less is better."""
    first, memory = rows[0].name, unit == "MiB"
    what = "memory" if memory else "speed"
    ratios = f"{what} of {first} / {what} of this row"
    header = ["", unit if memory else f"{unit} per second", ratios, "range"]
    cells = []
    for row in rows:
        itself = row.name == first
        ratio = "" if itself else f"{row.ratio:.2f}"
        spread = "" if itself or row.least == row.most else f"{row.least:.2f} to {row.most:.2f}"
        cells.append([row.name, significant(row.median, 3), ratio, spread])
    return Table(header, cells)
