"""Executes notebooks in place and stores nothing that changes from run to run.

    python tools/execute_notebooks.py                              every notebook
    python tools/execute_notebooks.py notebooks/02_attention.ipynb just this one

Cells keep their ids and the metadata that the book reads; times, versions and widths go. A second
run of a deterministic notebook changes no byte. A notebook that raises is left as it was.

How long a chapter takes is written to book/run_times.json, coarsely, for the line under its title:
seconds of one CPU core, Python's start included, which a busy machine hardly changes.
"""

import argparse
import json
import math
import os
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode, from_dict

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = ROOT / "notebooks"
RUN_TIMES = ROOT / "book" / "run_times.json"
# What a page says of its run time, in seconds.
ROUND = (5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600)
SKIP = "nbval-skip"
CELL_METADATA = {"tags", "mystnb"}
NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def normalise(notebook: NotebookNode) -> None:
    """Keeps of the metadata only what readers and the book use."""
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    notebook.metadata = from_dict(NOTEBOOK_METADATA)
    for cell in notebook.cells:
        kept = {key: cell.metadata[key] for key in sorted(CELL_METADATA & cell.metadata.keys())}
        cell.metadata = from_dict(kept)
        for output in cell.get("outputs", []):
            if "metadata" in output:
                output.metadata.pop("needs_background", None)


def check_ids(notebook: NotebookNode) -> None:
    """Ids are written by hand ("02-07"); one that is missing would be made up anew each time."""
    ids = [cell.get("id") for cell in notebook.cells]
    if None in ids:
        raise ValueError(f"cell {ids.index(None)} has no id")
    double = sorted({cell_id for cell_id in ids if ids.count(cell_id) > 1})
    if double:
        raise ValueError(f"cell ids appear twice: {', '.join(double)}")


def rounded(seconds: float, before: int | None = None) -> int:
    """The nearest round time; the one before stays unless it is wrong by half or more."""
    if before is not None and before / 1.5 < seconds < before * 1.5:
        return before
    return min(ROUND, key=lambda time: abs(math.log(time / max(seconds, 1))))


def store_time(name: str, seconds: float, path: Path) -> None:
    """Writes the run time of a notebook beside those of the others."""
    times = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    times[name] = rounded(seconds, times.get(name))
    path.write_text(json.dumps(times, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def cpu_of_children() -> float:
    """CPU seconds of the processes that this one has started and seen end."""
    times = os.times()
    return times.children_user + times.children_system


def execute(path: Path, timeout: int) -> bool:
    """Executes one notebook in place; returns whether the file changed."""
    before = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(before, as_version=4)
    check_ids(notebook)
    client = NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        skip_cells_with_tag=SKIP,
        resources={"metadata": {"path": str(path.parent)}},
    )
    client.execute()
    normalise(notebook)
    after = nbformat.writes(notebook) + "\n"
    if after == before:
        return False
    # Written aside and renamed: an interrupted run leaves the old notebook whole.
    temporary = path.with_suffix(".ipynb.tmp")
    temporary.write_text(after, encoding="utf-8")
    temporary.replace(path)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="default: all of notebooks/")
    parser.add_argument("--timeout", type=int, default=600, help="seconds a cell may take")
    parser.add_argument(
        "--times", type=Path, help="where run times go; default: book/run_times.json for chapters"
    )
    arguments = parser.parse_args()

    # The kernels inherit this process's environment.
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.pop("MPLBACKEND", None)

    failed = 0
    for path in arguments.notebooks or sorted(NOTEBOOKS.glob("*.ipynb")):
        # A notebook from elsewhere is nobody's chapter.
        own = RUN_TIMES if path.resolve().parent == NOTEBOOKS else None
        times = arguments.times or own
        started = cpu_of_children()
        try:
            changed = execute(path, arguments.timeout)
            if times is not None and hasattr(os, "fork"):  # Windows does not count them
                store_time(path.stem, cpu_of_children() - started, times)
            print(f"{path.name}: {'updated' if changed else 'unchanged'}")
        except (CellExecutionError, OSError, ValueError, nbformat.ValidationError) as error:
            failed += 1
            print(f"{path.name}: {error}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
