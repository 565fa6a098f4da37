"""The glossary: sorted, complete in each entry, and every link leads to a heading."""

import re
from pathlib import Path

import pytest

from transformer.book.anchors import anchors

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "book" / "glossary.md").read_text(encoding="utf-8")
BODY = re.search(r"^```\{glossary\}\n(.*?)^```$", TEXT, re.M | re.S)[1]
ENTRIES = {
    term: " ".join(definition.split())
    for term, definition in re.findall(r"^(\S.*)\n((?:  .*\n)+)", BODY, re.M)
}
PARTS = re.compile(
    r"(?P<text>.+?) \*Paper\*: (?P<paper>.+?)\. \*Code\*: (?P<code>.+?)\. "
    r"\[Chapter (?P<number>\d+)\]\(\.\./notebooks/(?P<file>\w+\.ipynb)(?:#(?P<anchor>[^)]+))?\)\."
)


def test_entries_are_all_read_sorted_and_many():
    assert len(ENTRIES) == len(re.findall(r"^\S", BODY, re.M)) >= 60
    assert list(ENTRIES) == sorted(ENTRIES, key=str.casefold)


@pytest.mark.parametrize("term", ENTRIES)
def test_each_term_is_defined_named_and_explained_in_a_chapter(term):
    parts = PARTS.fullmatch(ENTRIES[term])
    assert parts, ENTRIES[term]
    sentences = re.split(r"(?<=[.?!:]) ", parts["text"])
    assert len(parts["text"]) >= 20 and len(sentences) <= 4
    path = ROOT / "notebooks" / parts["file"]
    assert int(parts["number"]) == int(path.name[:2])
    assert path.is_file(), f"there is no {path.name}"
    assert not parts["anchor"] or parts["anchor"] in anchors(path), parts["anchor"]


def test_names_in_the_code_column_are_in_the_code():
    code = "\n".join(path.read_text() for path in (ROOT / "transformer").rglob("*.py"))
    for term, definition in ENTRIES.items():
        for snippet in re.findall(r"`([^`]+)`", PARTS.fullmatch(definition)["code"]):
            for word in re.findall(r"[A-Za-z_]\w+", snippet):
                if word not in ("transformer", "pad"):
                    assert re.search(rf"\b{word}\b", code), f"{term}: {word}"


def test_terms_that_are_referred_to_exist():
    used = re.findall(r"\{term\}`([^`]+)`", " ".join(TEXT.split()))
    assert len(used) >= 20
    for text in used:
        named = re.search(r"<(.+)>", text)
        assert (named[1] if named else text) in ENTRIES, text
