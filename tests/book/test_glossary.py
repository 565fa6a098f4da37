"""The glossary: sorted, and each entry names the code and a chapter."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "book" / "glossary.md").read_text(encoding="utf-8")
BODY = re.search(r"^```\{glossary\}\n(.*?)^```$", TEXT, re.M | re.S)[1]
ENTRIES = {
    term: " ".join(definition.split())
    for term, definition in re.findall(r"^(\S.*)\n((?:  .*\n)+)", BODY, re.M)
}
PARTS = re.compile(
    r"(?P<text>.{20,}?)(?: \*Paper\*: .+?\.)? \*Code\*: (?P<code>.+?)\. "
    r"\[Chapter (?P<number>\d+)\]\(\.\./notebooks/(?P<file>\w+)\.ipynb(?:#[^)]+)?\)\."
)


def test_entries_are_sorted_and_complete():
    assert len(ENTRIES) == len(re.findall(r"^\S", BODY, re.M)) >= 60
    assert list(ENTRIES) == sorted(ENTRIES, key=str.casefold)
    for term, definition in ENTRIES.items():
        parts = PARTS.fullmatch(definition)
        assert parts and int(parts["number"]) == int(parts["file"][:2]), term


def test_names_in_the_code_column_are_in_the_code():
    packages = (ROOT / "transformer", ROOT / "book" / "transformer_book")
    code = "\n".join(path.read_text() for package in packages for path in package.rglob("*.py"))
    words = set(re.findall(r"\w+", code)) | {"transformer", "pad"}
    for term, definition in ENTRIES.items():
        for snippet in re.findall(r"`([^`]+)`", PARTS.fullmatch(definition)["code"]):
            assert set(re.findall(r"[A-Za-z_]\w+", snippet)) <= words, term
