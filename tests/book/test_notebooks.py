"""The rules that every stored notebook keeps, besides giving the same outputs again (nbval)."""

import json
import re
import tomllib
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from book.make.notebooks import CELL_METADATA, COLAB_METADATA, NOTEBOOK_METADATA
from notebooks.conftest import pytest_collectstart
from transformer.published import REPOSITORY

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
LONGEST_CELL = 25
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path):
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def code_cells(path):
    return [cell for cell in cells(path) if cell["cell_type"] == "code"]


def tags(cell):
    return set(cell["metadata"].get("tags", []))


@every_notebook
def test_name_title_and_ids(path):
    assert re.fullmatch(r"\d\d_[a-z0-9_]+", path.stem)
    first = cells(path)[0]
    assert first["cell_type"] == "markdown" and "".join(first["source"]).startswith("# ")
    ids = [cell["id"] for cell in cells(path)]
    assert len(set(ids)) == len(ids)


@every_notebook
def test_the_first_code_cell_installs_the_package_in_colab(path):
    """With the book's extra, and without touching the torch that is there.

    From the repository, or from a wheel beside the notebook while the repository has no address.
    The first half of the first chapter needs no package.
    """
    first = code_cells(path)[0]
    if path.stem == "00_one_page":
        (first,) = (cell for cell in code_cells(path) if "%pip" in "".join(cell["source"]))
    source = "".join(first["source"])
    assert {"hide-cell", "nbval-skip"} <= tags(first) and first["outputs"] == []
    assert 'if importlib.util.find_spec("transformer") is None:' in source
    address = f" @ git+{REPOSITORY}@main" if REPOSITORY else ""
    package = "transformer-book" if REPOSITORY else "$(ls transformer_book-*.whl)"
    (line,) = [line for line in source.splitlines() if "%pip" in line]
    found = re.fullmatch(rf'    %pip install -q "{re.escape(package)}\[([a-z,]+)\]{address}"', line)
    assert {"book"} <= {*found[1].split(",")} <= PROJECT["optional-dependencies"].keys()


@every_notebook
def test_every_cell_was_executed_in_order_and_without_errors(path):
    run = [cell for cell in code_cells(path) if "nbval-skip" not in tags(cell)]
    assert [cell["execution_count"] for cell in run] == list(range(1, len(run) + 1))
    for cell in run:
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
        pictures = {"image/png", "image/svg+xml"}
        if not any(pictures & output.get("data", {}).keys() for output in cell["outputs"]):
            continue
        book = cell["metadata"].get("mystnb", {})
        figure, image = book.get("figure", {}), book.get("image", {})
        assert figure.get("name", "").startswith("fig-"), f"cell {cell['id']}: figure name"
        assert len(figure.get("caption", "")) > 20, f"cell {cell['id']}: the caption is too short"
        assert len(image.get("alt", "")) > 20, f"cell {cell['id']}: the alt text is too short"


@every_notebook
def test_charts_have_a_variant_for_phones_whose_letters_can_be_read(path):
    """It is left out where texts would meet; the wide one has letters of 7 pixels there."""
    for cell in code_cells(path):
        for output in cell["outputs"]:
            if not "".join(output.get("data", {}).get("text/plain", "")).startswith("<Figure"):
                continue
            narrow = output["metadata"].get("image/svg+xml", {}).get("narrow")
            assert narrow, f"cell {cell['id']}: the chart needs shorter or fewer texts"
            texts = re.findall(r'<text style="[^"]*?([\d.]+)px', narrow)
            width = float(re.search(r'viewBox="0 0 ([\d.]+)', narrow)[1])
            smallest = min(map(float, texts)) * 360 / width  # as wide as on a phone
            assert smallest >= 9, f"cell {cell['id']}: letters of {smallest:.1f} pixels"


@every_notebook
def test_metadata_is_what_the_executor_leaves(path):
    notebook = json.loads(path.read_text(encoding="utf-8"))
    asked = {key: notebook["metadata"].pop(key, None) for key in COLAB_METADATA}
    assert notebook["metadata"] == NOTEBOOK_METADATA
    # Only the chapter that trains the full model asks Colab for a GPU.
    wanted = {"accelerator": "GPU", "colab": {"gpuType": "T4"}}
    assert asked == (wanted if path.stem == "28_full_model" else dict.fromkeys(asked))
    assert all(set(cell["metadata"]) <= CELL_METADATA for cell in notebook["cells"])


@pytest.mark.parametrize(("failures", "starts"), [(0, 1), (2, 3), (9, 3)])
def test_a_kernel_that_died_is_started_again_but_not_forever(failures, starts):
    calls = []

    def setup():
        calls.append(1)
        if len(calls) <= failures:
            raise RuntimeError("Kernel died before replying to kernel_info")

    notebook = SimpleNamespace(setup=setup, skip_compare=())
    pytest_collectstart(notebook)
    with pytest.raises(RuntimeError, match="Kernel died") if failures == 9 else nullcontext():
        notebook.setup()
    assert len(calls) == starts
