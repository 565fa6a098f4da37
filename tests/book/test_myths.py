"""The list of myths and their chapter: each has its section, and each section its evidence."""

import json
import re
from functools import cache
from html import unescape
from itertools import groupby
from typing import get_args

import make_claims
import pytest

from transformer.book.myths import CHAPTERS, MYTHS, NOTES, Myth, Overview, Theme, Verdict, myth

NOTEBOOKS = make_claims.ROOT / "notebooks"
CHAPTER = NOTEBOOKS / "24_myths.ipynb"

# What the notes that the book started from got wrong, by what they are about; from reading them.
MISREAD = {
    "softmax", "convolutions", "exponential", "rows", "dimensions", "hierarchical", "value",
    "embeddings", "garbage", "sequence", "integer", "token", "Hub", "probabilities", "own word",
    "cosines",
}  # fmt: skip


@cache
def cells():
    return json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]


@cache
def sections():
    """The cells under each heading of the third level, as (kind, text)."""
    found, heading = {}, None
    for cell in cells():
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown" and text.startswith("#"):
            heading = text.splitlines()[0]
        found.setdefault(heading, []).append((cell["cell_type"], text))
    return found


def words(text):
    return " ".join(text.split())


@pytest.mark.parametrize("one", MYTHS, ids=lambda one: one.anchor)
def test_a_section_says_what_the_list_says_and_shows_it(one):
    section = sections()[one.heading]
    kinds, texts = zip(*section, strict=True)
    first, last = words(texts[0]), words(texts[-1])
    assert kinds[0] == kinds[-1] == "markdown"
    verdict = one.verdict.capitalize()
    assert first.startswith(f"{one.heading} **{verdict}.** *Why it is tempting.* ")
    evidence = [text for kind, text in section[1:-1] if kind == "code"]
    assert any(re.search(r"^\s*assert", text, re.M) for text in evidence), "nothing is asserted"
    assert last.startswith(f"**What is true.** {one.truth}")
    for number in one.chapters:
        assert f"]({CHAPTERS[number]}.ipynb" in last.partition("More: ")[2]


def test_sections_stand_in_the_order_of_the_list_under_their_themes():
    headings = [
        line
        for cell in cells()
        if cell["cell_type"] == "markdown"
        for line in "".join(cell["source"]).splitlines()
        if re.match('##+ ("|' + "|".join(map(re.escape, get_args(Theme))) + ")", line)
    ]
    expected = []
    for theme, group in groupby(MYTHS, key=lambda one: one.theme):
        expected += [f"## {theme}", *(one.heading for one in group)]
    assert headings == expected
    assert [line[3:] for line in expected if line[2] == " "] == list(get_args(Theme))


def test_every_misreading_of_the_notes_is_answered():
    answered = [note for one in MYTHS for note in one.notes]
    assert sorted(answered) == sorted(NOTES)
    assert len(MISREAD) == len(NOTES)
    for item in MISREAD:
        assert any(item in note for note in NOTES), item
    for one in MYTHS:  # what the notes got wrong is not half right
        if one.notes:
            assert one.verdict == "wrong" or one.notes == ("sines left, cosines right",)


def test_every_verdict_is_used_and_no_truth_is_a_paragraph():
    assert {one.verdict for one in MYTHS} == set(get_args(Verdict))
    assert all(one.truth.endswith(".") and len(one.truth) < 110 for one in MYTHS)


def test_nobody_is_named():
    """Addresses stand in the references at the end; the sections name no page."""
    for heading, section in sections().items():
        if heading.startswith('### "'):
            assert "http" not in " ".join(text for _, text in section)


def test_anchors_are_those_of_the_built_book():
    nodes = pytest.importorskip("docutils.nodes")
    assert len({one.anchor for one in MYTHS}) == len(MYTHS)
    for one in MYTHS:
        assert one.anchor == nodes.make_id(f"“{one.said}”")  # the id of the section
        assert one.anchor == re.sub(r"[^\w-]", "", one.said.lower().replace(" ", "-"))  # MyST's


def test_chapters_exist():
    for number, name in CHAPTERS.items():
        assert name.startswith(number) and (NOTEBOOKS / f"{name}.ipynb").exists()


def test_the_overview_links_sections_and_chapters():
    a = Myth("Heads", "All is lost", "half true", "If n < 2.", ("06", "20"))
    b = Myth("Masks", "All is well", "wrong", "It is not.", ("05",))
    page = Overview([a, b])._repr_html_()
    rows = re.findall(r"<tr>(.*?)</tr>", page.partition("<tbody>")[2])
    texts = [unescape(re.sub("<.*?>", "|", row)).strip("|") for row in rows]
    assert texts[0] == "Heads" and texts[2] == "Masks"
    assert re.split(r"\|+", texts[1]) == [
        "All is lost", "half true", "If n < 2.", "6", ", ", "20"
    ]  # fmt: skip
    assert re.findall('href="(.*?)"', page) == [
        "#all-is-lost", "06_heads.html", "20_heads_learned.html", "#all-is-well", "05_masks.html"
    ]  # fmt: skip
    assert page.count("<thead>") == page.count("</table>") == page.count("</div>") == 1
    assert repr(Overview([a, b])).splitlines()[1].split(" | ")[-1] == "6, 20"
    with pytest.raises(KeyError):
        Overview([Myth("Heads", "All is lost", "wrong", "No.", ("99",))])


def test_the_chapter_shows_the_whole_list():
    tables = [
        "".join(output["data"]["text/html"])
        for cell in cells()
        for output in cell.get("outputs", [])
        if "text/html" in output.get("data", {})
    ]
    assert Overview()._repr_html_() in tables


def test_a_myth_is_found_by_its_beginning():
    assert myth("A word attends").said == "A word attends most to itself"
    for start in ("Nobody says this", "The "):
        with pytest.raises(LookupError):
            myth(start)


@pytest.mark.parametrize("said", ["", "8 heads", "it's so", "a, b", "two  blanks", "d_k", "a -b"])
def test_statements_that_make_no_safe_anchor_are_refused(said):
    if said == "a, b":
        assert Myth("Heads", said, "wrong", "No.", ("06",)).anchor == "a-b"
    else:
        with pytest.raises(ValueError, match="said"):
            Myth("Heads", said, "wrong", "No.", ("06",))
