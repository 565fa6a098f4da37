"""Writes the index of paper and code from the docstrings and the ends of the chapters.

    python tools/make_paper_index.py

A test fails when the page and the package have parted, so run this after a docstring, a public
name or a chapter's last table has changed.
"""

from pathlib import Path

from transformer.book.paper_index import render_paper_index
from transformer.book.public_names import public_names

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "book" / "paper_index.md"
NOTEBOOKS = ROOT / "notebooks"

if __name__ == "__main__":
    PAGE.write_text(render_paper_index(public_names(), NOTEBOOKS), encoding="utf-8")
    print(f"{PAGE.name}: written")
