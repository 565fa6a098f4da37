"""The recorded translation runs, one JSON file per run."""

from pathlib import Path
from typing import Any

from transformer.recipes.record import read_record

#: Folder of the records that the book draws from.
RUNS = Path(__file__).parent / "runs"


def recorded_runs(folder: Path | str = RUNS) -> dict[str, dict[str, Any]]:
    """Read the records ``NAME.json`` of a folder, by name in alphabetical order."""
    return {path.stem: read_record(path) for path in sorted(Path(folder).glob("*.json"))}
