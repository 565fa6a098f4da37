"""Writes the claims ledger from the tables at the end of the chapters.

    python tools/make_claims.py

A test fails when the page and the chapters have parted, so run this after executing a notebook.
"""

from pathlib import Path

from transformer.book.claims import render_claims

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "book" / "claims.md"

if __name__ == "__main__":
    PAGE.write_text(render_claims(ROOT / "notebooks"), encoding="utf-8")
    print(f"{PAGE.name}: written")
