"""The speed page: prose written on the page, tables from what programs recorded."""

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from transformer.book.tables import Table, significant
from transformer.lab.speed import step_time
from transformer.lab.speed.step_time import KINDS, StepTime
from transformer.lab.table_2.recorded import recorded_runs
from transformer.recipes.throughput import MEASUREMENTS

SPEED = Path(step_time.__file__).parent
#: What ``make bench`` writes.
RECORD = SPEED / "speed.json"
#: What tools/record_step_time.py writes.
STEP_TIME = SPEED / "step_time.json"
_EXPORT = SPEED / "export.json"  # what tools/record_export.py writes


@dataclass(frozen=True)
class Row:
    """One program in one table.

    Args:
        name: of the program.
        median: of its speed over the rounds, units a second (or MiB, for memory).
        ratio: median over the rounds of the first program's speed divided by this one's.
        least: the smallest of these ratios.
        most: the largest.
    """

    name: str
    median: float
    ratio: float
    least: float
    most: float


def summarise(speed: Mapping[str, Sequence[float]]) -> list[dict[str, Any]]:
    """Compare all programs with the first, round by round.

    Args:
        speed: for each program a number for each round, of the same rounds.

    Returns:
        The fields of a :class:`Row` for each, in order.

    Raises:
        ValueError: if a program took part in fewer rounds than another.
    """
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
    """The table of one comparison.

    Args:
        unit: what is counted; "MiB" counts memory, of which less is better.
        rows: the programs, the one that is compared with the others first.
    """
    first = rows[0].name
    memory = unit == "MiB"
    times = "times its memory" if memory else "times its speed"
    header = ["", unit if memory else f"{unit} a second", f"{first}: {times}", "range"]
    cells = []
    for row in rows:
        itself = row.name == first
        ratio = "" if itself else f"{row.ratio:.2f}"
        spread = "" if itself or row.least == row.most else f"{row.least:.2f} to {row.most:.2f}"
        cells.append([row.name, significant(row.median, 3), ratio, spread])
    return Table(header, cells)


def recorded_speed(path: Path = RECORD) -> dict[str, Any]:
    """Read the record: ``environment``, ``command`` and ``tables`` by name.

    Raises:
        FileNotFoundError: if nothing was recorded.
    """
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record


def ratio(record: Mapping[str, Any], table: str, name: str) -> float:
    """How many times as fast the first program of a table is as another.

    Args:
        record: from :func:`recorded_speed`.
        table: its name.
        name: of the other program.

    Raises:
        KeyError: if there is no such table or program.
    """
    rows = {row["name"]: row for row in record["tables"][table]["rows"]}
    return float(rows[name]["ratio"])


def step_table(steps: Mapping[str, StepTime]) -> Table:
    """The table of where the time of a training step goes.

    Args:
        steps: what was measured, by what heads its column.
    """
    rows = []
    for kind in KINDS:
        shares = [step.shares.get(kind, 0.0) for step in steps.values()]
        if any(shares):
            rows.append([kind, *(f"{share:.1%}" for share in shares)])
    seconds = [f"{significant(step.seconds_per_step, 3)}" for step in steps.values()]
    rates = [step.target_tokens_per_step / step.seconds_per_step for step in steps.values()]
    rows.append(["seconds a step", *seconds])
    rows.append(["target tokens a second", *(significant(rate, 3) for rate in rates)])
    return Table(["of a step", *steps], rows)


def blocks(record: Mapping[str, Any], measurements: Path = MEASUREMENTS) -> dict[str, str]:
    """What the page shows, by the names that its markers of kind "speed" use.

    Args:
        record: from :func:`recorded_speed`.
        measurements: the folder of what ``make gpu`` measured.

    Returns:
        A table in Markdown for each of the record, one of the exported model as "export", one of
        the parts of a step as "step", what is known of GPUs as "gpu", and "machine".
    """
    export = json.loads(_EXPORT.read_text(encoding="utf-8"))
    step_time = json.loads(STEP_TIME.read_text(encoding="utf-8"))
    steps = {name: StepTime(**found) for name, found in step_time["sizes"].items()}
    texts = {
        "machine": f"\n\n{_machine(record)}\n\n",
        "export": f"\n\n{_export(export).markdown()}\n",
        "step": f"\n\n{step_table(steps).markdown()}\n{_machine(step_time)}\n\n",
        "gpu": f"\n\n{_on_gpus(measurements)}\n\n",
    }
    for name, found in record["tables"].items():
        table = speed_table(found["unit"], [Row(**row) for row in found["rows"]])
        texts[name] = f"\n\n**{found['title']}**\n\n{table.markdown()}\n"
    return texts


def _machine(record: Mapping[str, Any]) -> str:
    environment = record["environment"]
    hardware, libraries = environment["hardware"], environment["libraries"]
    return (
        f"{hardware['cpu']}, {hardware['cores']} cores; Python {environment['python']}, "
        f"PyTorch {libraries['torch']}; code {environment['code']}; `{record['command']}`."
    )


def _on_gpus(measurements: Path) -> str:
    """Speed of the recipes on GPUs and where their steps' time goes, or that nobody knows yet."""
    found = {
        name.removesuffix("-throughput"): record
        for name, record in recorded_runs(measurements).items()
        if record.get("kind") == "throughput" and not record["device"].startswith("cpu")
    }
    if not found:
        return "Nothing on this page was measured on a GPU yet, and this page does not guess."
    header = ["recipe", "GPU", "precision", "target tokens a second", "of the matrix rate"]
    rows = []
    for name, record in found.items():
        rate, share = record["target_tokens_per_second"], record["utilisation"]
        used = "" if share is None else f"{share:.0%}"
        rows.append([name, record["device"], record["precision"], significant(rate, 3), used])
    parts = {name: StepTime(**r["step_time"]) for name, r in found.items() if "step_time" in r}
    tables = [Table(header, rows)] + ([step_table(parts)] if parts else [])
    return "\n".join(table.markdown() for table in tables).rstrip()


def _export(record: Mapping[str, Any]) -> Table:
    """BLEU of the exported model by search, and how many translations stayed the same."""
    pairs = record["pairs"]
    header = ["search", "BLEU here", "float32 there", "int8 there", f"of {pairs} as here"]
    rows = []
    for search, found in record["searches"].items():
        scores = [f"{found[kind]['bleu']:.2f}" for kind in ("ours", "float32", "int8")]
        equal = f"float32 {found['float32']['equal']}, int8 {found['int8']['equal']}"
        rows.append([search, *scores, equal])
    return Table(header, rows)
