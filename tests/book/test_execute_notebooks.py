"""The executor leaves no trace of when and where it ran; the runner takes only known parameters."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from execute_notebooks import (
    NOTEBOOKS,
    ROUND,
    RUN_TIMES,
    check_ids,
    cpu_of_children,
    rounded,
    store_time,
)
from nbformat import from_dict
from run_notebook import parse_parameters, parse_value

TOOLS = Path(__file__).resolve().parents[2] / "tools"


def code(cell_id, source, **metadata):
    return {
        "cell_type": "code",
        "id": cell_id,
        "metadata": metadata,
        "source": source,
        "outputs": [],
        "execution_count": None,
    }


def write(path, *cells):
    notebook = {
        "cells": list(cells),
        "metadata": {
            "widgets": {},
            "kernelspec": {"display_name": "Mine", "language": "python", "name": "python3"},
            "language_info": {"name": "python", "version": "3.0"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(notebook))
    return path


def run(script, *arguments):
    command = [sys.executable, TOOLS / script, *arguments]
    return subprocess.run(command, capture_output=True, text=True)


def test_executing_twice_changes_no_byte(tmp_path):
    path = write(
        tmp_path / "a.ipynb",
        code("a-1", "raise SystemExit", tags=["nbval-skip"]),
        code("a-2", "x = 2\nx", tags=["hide-input"], execution={"started": "now"}),
        code("a-3", "for i in range(3):\n    print(i, flush=True)", mystnb={"image": {"alt": "?"}}),
    )
    finished = run("execute_notebooks.py", path)
    assert finished.returncode == 0, finished.stderr
    first = path.read_bytes()
    assert "a.ipynb: unchanged" in run("execute_notebooks.py", path).stdout
    assert path.read_bytes() == first

    notebook = json.loads(first)
    skipped, value, printed = notebook["cells"]
    assert notebook["metadata"]["language_info"] == {"name": "python"}
    assert "widgets" not in notebook["metadata"]
    assert skipped["execution_count"] is None and skipped["outputs"] == []
    assert value["metadata"] == {"tags": ["hide-input"]} and value["execution_count"] == 1
    assert printed["metadata"] == {"mystnb": {"image": {"alt": "?"}}}
    assert [output["text"] for output in printed["outputs"]] == [["0\n", "1\n", "2\n"]]


def test_seconds_are_of_the_cpu_and_of_processes_that_ended():
    busy = "import time\nwhile time.process_time() < 0.6: pass\ntime.sleep(1.5)"
    before = cpu_of_children()
    subprocess.run([sys.executable, "-c", busy], check=True)
    assert 0.5 < cpu_of_children() - before < 1.2


def test_the_run_time_is_written_down(tmp_path):
    path = write(tmp_path / "a.ipynb", code("a-1", "1"))
    times = tmp_path / "times.json"
    assert run("execute_notebooks.py", path, "--times", times).returncode == 0
    assert json.loads(times.read_text()) == {"a": 5}


def test_a_notebook_from_elsewhere_leaves_the_run_times_alone(tmp_path):
    path = write(tmp_path / "a.ipynb", code("a-1", "1"))
    before = RUN_TIMES.read_bytes()
    assert run("execute_notebooks.py", path).returncode == 0
    assert RUN_TIMES.read_bytes() == before and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    "seconds, before, after",
    [(0.1, None, 5), (11, None, 10), (26, None, 30), (1e4, None, 600), (25, 20, 20), (31, 20, 30)]
    + [(14, 20, 20), (13, 20, 15)],
)
def test_run_times_are_coarse_and_steady(seconds, before, after):
    assert rounded(seconds, before) == after and after in ROUND


def test_run_times_of_others_stay(tmp_path):
    path = tmp_path / "times.json"
    for name, seconds in [("b", 9), ("a", 31), ("a", 34)]:
        store_time(name, seconds, path)
    assert path.read_text() == '{\n  "a": 30,\n  "b": 10\n}\n'


def test_every_chapter_has_a_run_time():
    chapters = {path.stem for path in NOTEBOOKS.glob("*.ipynb")}
    assert json.loads(RUN_TIMES.read_text()).keys() == chapters


def test_a_notebook_that_raises_stays_as_it_was(tmp_path):
    path = write(tmp_path / "a.ipynb", code("a-1", "1 / 0"))
    before = path.read_bytes()
    finished = run("execute_notebooks.py", path)
    assert finished.returncode == 1 and "ZeroDivisionError" in finished.stderr
    assert path.read_bytes() == before and list(tmp_path.iterdir()) == [path]


def test_ids_must_be_there_once():
    with pytest.raises(ValueError, match="a-1"):
        check_ids(from_dict({"cells": [{"id": "a-1"}, {"id": "a-1"}]}))
    with pytest.raises(ValueError, match="cell 1 has no id"):
        check_ids(from_dict({"cells": [{"id": "a-1"}, {}]}))


def test_the_runner_passes_parameters_and_strips_the_copy(tmp_path):
    path = write(
        tmp_path / "a.ipynb",
        code("a-1", "steps: int = 30\nname = 'x'", tags=["parameters"]),
        code("a-2", "print(steps + 1, name)"),
    )
    before, copy = path.read_bytes(), tmp_path / "out" / "b.ipynb"
    finished = run("run_notebook.py", path, copy, "steps=4", "name=smoke")
    assert finished.returncode == 0, finished.stderr
    assert path.read_bytes() == before
    notebook = json.loads(copy.read_text())
    assert notebook["cells"][-1]["outputs"][0]["text"] == ["5 smoke\n"]
    assert notebook["metadata"]["papermill"] == {"parameters": {"steps": 4, "name": "smoke"}}
    assert str(tmp_path) not in copy.read_text()


def test_the_runner_refuses_unknown_parameters():
    with pytest.raises(ValueError, match="no parameter 'setps'; the notebook has: name, steps"):
        parse_parameters(["setps=4"], {"steps", "name"})
    with pytest.raises(ValueError, match="name=value"):
        parse_parameters(["steps"], {"steps"})


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("1e-3", 0.001), ("true", True), ("False", False), ("smoke", "smoke"), ("", "")],
)
def test_parameters_are_typed(text, value):
    parsed = parse_value(text)
    assert parsed == value and type(parsed) is type(value)
