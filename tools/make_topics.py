"""Writes the map of topics from the list in the package and the headings of the chapters.

    python tools/make_topics.py

A test fails when the page and the list have parted, so run this after a heading has changed.
"""

from pathlib import Path

from transformer.book.topics import render_topics

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "book" / "topics.md"

if __name__ == "__main__":
    PAGE.write_text(render_topics(ROOT), encoding="utf-8")
    print(f"{PAGE.name}: written")
