"""The recorded translation runs, one JSON file per run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformer.recipes.record import read_record

#: Folder of the records that the book draws from.
RUNS = Path(__file__).parent / "runs"


def recorded_runs(folder: Path | str = RUNS) -> dict[str, dict[str, Any]]:
    """Read the records ``NAME.json`` by name; one that continued another has it as "first_run"."""
    runs = {path.stem: read_record(path) for path in sorted(Path(folder).glob("*.json"))}
    return {name: with_first_run(record, runs) for name, record in runs.items()}


def with_first_run(record: dict[str, Any], runs: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Add "first_run" to the record of a run that started from ``runs/NAME/model``."""
    if "first_run" in record:
        return record
    start = record.get("preset", {}).get("init_from")
    name = start and Path(start).parent.name
    return record | dict(first_run=runs[name]) if name in runs else record
