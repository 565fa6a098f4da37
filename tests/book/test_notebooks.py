"""What every stored notebook must keep to, beside giving the same outputs again (nbval)."""

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LONGEST_CELL = 20
INSTALL = "git+https://github.com/transformer-book/transformer-book"

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def tags(cell):
    return set(cell["metadata"].get("tags", []))


def code_cells(path):
    return [cell for cell in read(path)["cells"] if cell["cell_type"] == "code"]


def executed_cells(path):
    return [cell for cell in code_cells(path) if "nbval-skip" not in tags(cell)]


def test_there_are_notebooks():
    assert NOTEBOOKS, "notebooks/ holds no chapter"


@every_notebook
def test_name_and_title(path):
    assert re.fullmatch(r"\d\d_[a-z0-9_]+", path.stem)
    first = read(path)["cells"][0]
    assert first["cell_type"] == "markdown" and "".join(first["source"]).startswith("# ")


@every_notebook
def test_first_code_cell_installs_the_package_in_colab(path):
    first = code_cells(path)[0]
    assert {"hide-cell", "nbval-skip"} <= tags(first)
    source = "".join(first["source"])
    assert INSTALL in source and "find_spec" in source and first["outputs"] == []


@every_notebook
def test_every_cell_was_executed_in_order(path):
    counts = [cell["execution_count"] for cell in executed_cells(path)]
    assert counts == list(range(1, len(counts) + 1))


@every_notebook
def test_no_stored_errors_or_warnings(path):
    for cell in code_cells(path):
        for output in cell["outputs"]:
            assert output.get("name") != "stderr", f"cell {cell['id']} wrote to stderr"
            if output["output_type"] == "error":
                assert "raises-exception" in tags(cell), f"cell {cell['id']} holds an error"


@every_notebook
def test_cells_are_short(path):
    for cell in code_cells(path):
        lines = [line for line in "".join(cell["source"]).splitlines() if line.strip()]
        assert len(lines) <= LONGEST_CELL, f"cell {cell['id']} has {len(lines)} lines"


@every_notebook
def test_pictures_have_name_caption_and_description(path):
    for cell in code_cells(path):
        if not any("image/png" in output.get("data", {}) for output in cell["outputs"]):
            continue
        book = cell["metadata"].get("mystnb", {})
        figure, image = book.get("figure", {}), book.get("image", {})
        assert figure.get("name", "").startswith("fig-"), f"cell {cell['id']}: figure name"
        assert len(figure.get("caption", "")) > 20, f"cell {cell['id']}: the caption is too short"
        assert len(image.get("alt", "")) > 20, f"cell {cell['id']}: the alt text is too short"


@every_notebook
def test_cell_ids_are_readable_and_unique(path):
    ids = [cell["id"] for cell in read(path)["cells"]]
    assert len(set(ids)) == len(ids)
    assert all(cell_id.startswith(path.stem[:2] + "-") for cell_id in ids)


@every_notebook
def test_metadata_is_what_the_executor_leaves(path):
    from execute_notebooks import CELL_METADATA, NOTEBOOK_METADATA

    notebook = read(path)
    assert notebook["metadata"] == NOTEBOOK_METADATA
    for cell in notebook["cells"]:
        assert set(cell["metadata"]) <= CELL_METADATA


def test_figure_names_are_unique_in_the_book():
    names = [
        cell["metadata"]["mystnb"]["figure"]["name"]
        for path in NOTEBOOKS
        for cell in code_cells(path)
        if "figure" in cell["metadata"].get("mystnb", {})
    ]
    assert sorted(set(names)) == sorted(names)
