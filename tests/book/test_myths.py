"""Every statement has evidence: words in the chapter it names, or an experiment in its own."""

import json
import re
from functools import cache
from pathlib import Path

import pytest

from transformer_book.myths import CHAPTERS, MYTHS

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
TESTED = [one for one in MYTHS if one.question]
CITED = [one for one in MYTHS if not one.question]


def cells(stem):
    return json.loads((NOTEBOOKS / f"{stem}.ipynb").read_text(encoding="utf-8"))["cells"]


@cache
def words(stem):
    """All that a chapter's cells and outputs say, without quotes and line breaks."""
    found = []
    for cell in cells(stem):
        found += cell["source"]
        for output in cell.get("outputs", []):
            found += [*output.get("text", []), *output.get("data", {}).get("text/plain", [])]
    return re.sub(r'["\s]+', " ", "".join(found)).lower()


def sections():
    """The cells under each heading of the third level, as (kind, text, outputs)."""
    found, heading = {}, None
    for cell in cells("27_myths"):
        text = "".join(cell["source"])
        for line in text.splitlines() if cell["cell_type"] == "markdown" else ():
            if line.startswith("### "):
                heading = line
        found.setdefault(heading, []).append((cell["cell_type"], text, cell.get("outputs")))
    return found


@pytest.mark.parametrize("one", CITED, ids=lambda one: one.said)
def test_the_first_chapter_named_has_the_evidence(one):
    assert one.shown.lower() in words(CHAPTERS[one.chapters[0]])


@pytest.mark.parametrize("one", TESTED, ids=lambda one: one.anchor)
def test_an_experiment_has_statement_numbers_and_truth(one):
    asked, code, told = sections()[f"### {one.question}"][:3]
    assert f"*{one.said}.*" in asked[1]
    assert code[0] == "code" and re.search(r"\d", json.dumps(code[2]))
    assert told[1].startswith(f"**What is true.** {one.truth}")
    for number in one.chapters:
        assert f"]({CHAPTERS[number]}.ipynb" in told[1].partition("More: ")[2]


def test_all_experiments_are_in_the_order_of_the_list():
    assert [*sections()][1:] == [f"### {one.question}" for one in TESTED]
    assert len(TESTED) == 10 and f"{len(MYTHS)} statements" in words("27_myths")


def test_anchors_are_unique_and_those_of_sphinx():
    nodes = pytest.importorskip("docutils.nodes")
    assert len({one.anchor for one in TESTED}) == len(TESTED)
    assert all(one.anchor == nodes.make_id(one.question) for one in TESTED)
