"""Runs a notebook with parameters into another file (papermill), leaving the notebook as it is.

    python tools/run_notebook.py notebooks/16_training.ipynb out.ipynb preset=smoke

papermill only warns of a parameter that the notebook does not have; here it is an error. The copy
keeps its parameters as the record of the run, and no times and no paths.
"""

import argparse
import os
import sys
from pathlib import Path

import nbformat
import papermill
from execute_notebooks import normalise
from nbformat import from_dict
from papermill.exceptions import PapermillExecutionError

Parameters = dict[str, str | int | float | bool]


def parse_parameters(pairs: list[str], known: set[str]) -> Parameters:
    """Turns ["steps=30", "preset=smoke"] into typed values, and refuses names not in `known`."""
    parameters: Parameters = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not equals:
            raise ValueError(f"a parameter is written name=value, got {pair!r}")
        if name not in known:
            raise ValueError(f"no parameter {name!r}; the notebook has: {', '.join(sorted(known))}")
        parameters[name] = parse_value(text)
    return parameters


def parse_value(text: str) -> str | int | float | bool:
    """Reads a number or true/false where the text is one."""
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def strip(path: Path, parameters: Parameters) -> None:
    """Takes times and paths out of an executed notebook; the parameters stay."""
    notebook = nbformat.read(path, as_version=4)
    normalise(notebook)
    notebook.metadata["papermill"] = from_dict({"parameters": parameters})
    nbformat.write(notebook, path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebook", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("parameters", nargs="*", metavar="name=value")
    arguments = parser.parse_args()

    os.environ.setdefault("OMP_NUM_THREADS", "1")
    os.environ.pop("MPLBACKEND", None)
    try:
        known = set(papermill.inspect_notebook(arguments.notebook))
        parameters = parse_parameters(arguments.parameters, known)
        arguments.output.parent.mkdir(parents=True, exist_ok=True)
        papermill.execute_notebook(
            arguments.notebook,
            arguments.output,
            parameters=parameters,
            kernel_name="python3",
            cwd=str(arguments.notebook.parent),
            progress_bar=False,
        )
    except (OSError, ValueError, PapermillExecutionError) as error:
        print(f"{arguments.notebook.name}: {error}", file=sys.stderr)
        return 1
    strip(arguments.output, parameters)
    print(f"{arguments.notebook.name}: ran with {parameters}, written to {arguments.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
