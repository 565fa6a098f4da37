"""The claims ledger: every row has its evidence, and says what the chapter's output says."""

import json
import re

import make_claims
import pytest

from transformer.book.claims import (
    ANCHOR,
    CLAIMS,
    SECTION,
    Claim,
    chapters,
    evidence_of,
    render_claims,
    stored_rows,
)
from transformer.book.tables import comparison

NOTEBOOKS = make_claims.ROOT / "notebooks"


def test_the_page_is_what_the_chapters_say():
    """It fails after a chapter has changed, until somebody calls: python tools/make_claims.py."""
    assert make_claims.PAGE.read_text(encoding="utf-8") == render_claims(NOTEBOOKS)


def test_every_chapter_that_measures_speaks_about_a_claim():
    used = {chapter for claim in CLAIMS for chapter, _ in claim.evidence}
    assert {number for number, path in chapters(NOTEBOOKS).items() if stored_rows(path)} == used


def test_links_lead_to_a_heading_that_is_there():
    page = make_claims.PAGE.read_text(encoding="utf-8")
    links = set(re.findall(r"\]\(\.\./(notebooks/\d\d_\w+\.ipynb)#([\w-]+)\)", page))
    assert len(links) >= 12
    for path, anchor in links:
        assert anchor == ANCHOR == re.sub(r"\W+", "-", SECTION.lower())
        cells = json.loads((make_claims.ROOT / path).read_text(encoding="utf-8"))["cells"]
        headings = [line for c in cells if c["cell_type"] == "markdown" for line in c["source"]]
        assert f"## {SECTION}" in (line.strip() for line in headings), path


@pytest.fixture
def folder(tmp_path):
    """A chapter with one table, whose cells hold signs of HTML and of Markdown."""
    table = comparison([("3: a < b", "0.5 | 1.0 & more", "Nowhere"), ("3: a rest", "2", "All")])
    output = dict(data={"text/html": table._repr_html_().splitlines(keepends=True)})
    cells = [
        dict(cell_type="markdown", source=["no outputs here"]),
        dict(cell_type="code", outputs=[dict(text="a stream"), output]),
    ]
    (tmp_path / "07_here.ipynb").write_text(json.dumps(dict(cells=cells)))
    (tmp_path / "notes.ipynb").write_text(json.dumps(dict(cells=[])))
    return tmp_path


def test_rows_come_back_as_they_were_put_in(folder):
    assert list(chapters(folder)) == ["07"]
    assert stored_rows(folder / "07_here.ipynb") == [
        ("3: a < b", "0.5 | 1.0 & more", "Nowhere"), ("3: a rest", "2", "All")
    ]  # fmt: skip
    assert stored_rows(folder / "notes.ipynb") == []


def test_a_claim_stands_once_and_each_piece_of_evidence_has_a_line(folder):
    claim = Claim("3", "a is small", "holds", (("07", "3: a <"), ("07", "3: a r")))
    lines = [line for line in render_claims(folder, [claim]).splitlines() if line[:2] == "| "]
    link = f"[7](../notebooks/07_here.ipynb#{ANCHOR})"
    assert lines[2:] == [
        f"| 3 | a is small | **holds** | 0.5 \\| 1.0 & more | Nowhere | {link} |",
        f"|  |  |  | 2 | All | {link} |",
    ]
    assert "1 of\nthem" in render_claims(folder, [claim])
    assert "order: 1 hold, 0 hold in part, 0 do not show" in render_claims(folder, [claim])


@pytest.mark.parametrize("start, found", [("3: b", 0), ("3: a", 2)])
def test_evidence_is_one_row(folder, start, found):
    rows = {"07": stored_rows(folder / "07_here.ipynb")}
    with pytest.raises(LookupError, match=f"chapter 07 has {found} rows that begin with"):
        evidence_of(Claim("3", "a is small", "holds", (("07", start),)), rows)
    with pytest.raises(LookupError, match="chapter 08 has 0 rows"):
        evidence_of(Claim("3", "a is small", "holds", (("08", "3: a <"),)), rows)
