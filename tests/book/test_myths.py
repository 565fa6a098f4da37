"""The list of myths and the chapter on them agree."""

import json
import re
from itertools import groupby
from pathlib import Path

import pytest

from transformer.book.myths import CHAPTERS, MYTHS, Myth, Overview

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
CELLS = json.loads((NOTEBOOKS / "24_myths.ipynb").read_text(encoding="utf-8"))["cells"]


def sections():
    """The cells under each heading of the third level, as (kind, text)."""
    found, heading = {}, None
    for cell in CELLS:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and text.startswith("#"):
            heading = text.splitlines()[0]
        found.setdefault(heading, []).append((cell["cell_type"], text))
    return found


@pytest.mark.parametrize("one", MYTHS, ids=lambda one: one.anchor)
def test_a_section_has_verdict_evidence_and_truth(one):
    section = sections()[one.heading]
    first, last = (" ".join(section[i][1].split()) for i in (0, -1))
    assert first.startswith(f"{one.heading} **{one.verdict.capitalize()}.** ")
    assert any("assert" in text for kind, text in section if kind == "code")
    assert last.startswith(f"**What is true.** {one.truth}")
    for number in one.chapters:
        assert f"]({CHAPTERS[number]}.ipynb" in last.partition("More: ")[2]


def test_sections_follow_the_order_of_the_list():
    lines = [line for c in CELLS if c["cell_type"] == "markdown" for line in c["source"]]
    expected = []
    for theme, group in groupby(MYTHS, key=lambda one: one.theme):
        expected += [f"## {theme}", *(one.heading for one in group)]
    headings = [line.strip() for line in lines if line.strip() in expected or line[:5] == '### "']
    assert headings == expected


def test_anchors_are_unique_and_those_of_sphinx():
    nodes = pytest.importorskip("docutils.nodes")
    assert len({one.anchor for one in MYTHS}) == len(MYTHS)
    assert all(one.anchor == nodes.make_id(f"“{one.said}”") for one in MYTHS)


def test_the_chapter_shows_the_overview():
    tables = [
        "".join(output.get("data", {}).get("text/html", []))
        for cell in CELLS
        for output in cell.get("outputs", [])
    ]
    page = Overview()._repr_html_()
    assert page in tables and page.count("<tr>") == 1 + len(MYTHS) + len(
        {one.theme for one in MYTHS}
    )
    assert set(re.findall('href="#(.*?)"', page)) == {one.anchor for one in MYTHS}
    with pytest.raises(KeyError):
        Overview([Myth("Heads", "All is lost", "wrong", "No.", ("99",))])
