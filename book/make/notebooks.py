"""Execute notebooks in place, or with parameters into a copy.

Nothing is stored that changes from run to run: cells keep their ids and the metadata that the book
reads; times, versions and widths are dropped. A second run of a deterministic notebook changes no
byte, and a notebook that raises stays as it was.
"""

import json
import math
import os
import sys
from pathlib import Path
from typing import Annotated

import nbformat
import papermill
import typer
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode, from_dict

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
#: CPU seconds of each chapter, Python's start included, for the line under its title.
RUN_TIMES = ROOT / "book" / "run_times.json"
#: The run times that a page can state, in seconds.
ROUND = (5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600)
#: What stops one notebook and not the others. A kernel that dies raises RuntimeError.
FAILURES = (CellExecutionError, OSError, RuntimeError, ValueError, nbformat.ValidationError)
CELL_METADATA = {"tags", "mystnb"}
NOTEBOOK_METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
#: The GPU that a chapter asks Colab for.
COLAB_METADATA = {"accelerator", "colab"}


def normalise(notebook: NotebookNode) -> None:
    """Keep only the metadata that readers and the book use."""
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    asked = {key: notebook.metadata[key] for key in COLAB_METADATA & notebook.metadata.keys()}
    notebook.metadata = from_dict(NOTEBOOK_METADATA | asked)
    for cell in notebook.cells:
        kept = {key: cell.metadata[key] for key in sorted(CELL_METADATA & cell.metadata.keys())}
        cell.metadata = from_dict(kept)
        for output in cell.get("outputs", []):
            output.get("metadata", {}).pop("needs_background", None)


def store_time(name: str, seconds: float, path: Path = RUN_TIMES) -> None:
    """Store a run time, rounded; one of before stays unless it is wrong by half."""
    times = json.loads(path.read_text(encoding="utf-8"))
    if not times.get(name, 0) / 1.5 < seconds < times.get(name, 0) * 1.5:
        times[name] = min(ROUND, key=lambda time: abs(math.log(time / max(seconds, 1))))
    path.write_text(json.dumps(times, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def cpu_of_children() -> float:
    """Return the CPU seconds of the finished child processes; a busy machine hardly changes it."""
    times = os.times()
    return times.children_user + times.children_system


def set_environment() -> None:
    """Prepare the environment that the kernels inherit: one thread, figures shown."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.pop("MPLBACKEND", None)


def execute_one(path: Path, timeout: int = 600) -> bool:
    """Execute a notebook in place; return whether the file changed."""
    before = path.read_text(encoding="utf-8")
    notebook = nbformat.reads(before, as_version=4)
    NotebookClient(
        notebook,
        timeout=timeout,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        skip_cells_with_tag="nbval-skip",
        resources={"metadata": {"path": str(path.parent)}},
    ).execute()
    normalise(notebook)
    after = nbformat.writes(notebook) + "\n"
    if after == before:
        return False
    # An interrupted run leaves the old notebook whole.
    temporary = path.with_suffix(".ipynb.tmp")
    temporary.write_text(after, encoding="utf-8")
    temporary.replace(path)
    return True


def execute(
    notebooks: Annotated[list[Path] | None, typer.Argument(help="default: all chapters")] = None,
    timeout: Annotated[int, typer.Option(help="seconds per cell")] = 600,
) -> None:
    """Execute notebooks in place and store how long each chapter takes."""
    set_environment()
    failed = 0
    for path in notebooks or sorted(NOTEBOOKS.glob("*.ipynb")):
        started = cpu_of_children()
        try:
            changed = execute_one(path, timeout)
        except FAILURES as error:
            failed += 1
            print(f"{path.name}: {error}", file=sys.stderr)
            continue
        if path.resolve().parent == NOTEBOOKS and hasattr(os, "fork"):  # Windows has no such count
            store_time(path.stem, cpu_of_children() - started)
        print(f"{path.name}: {'updated' if changed else 'unchanged'}", flush=True)
    raise typer.Exit(1 if failed else 0)


def smoke() -> None:
    """Run the final chapter with the preset "smoke" into _build/smoke."""
    set_environment()
    chapter = NOTEBOOKS / "28_full_model.ipynb"
    copy = ROOT / "_build" / "smoke" / chapter.name
    copy.parent.mkdir(parents=True, exist_ok=True)
    options = dict(kernel_name="python3", cwd=str(NOTEBOOKS), progress_bar=False)
    papermill.execute_notebook(chapter, copy, parameters={"preset": "smoke"}, **options)
    print(f"{chapter.name}: ran with preset=smoke")
