"""Writes the results page from the recorded runs.

    python tools/make_results.py

A test fails when the page and the records have parted, so run this after a new run.
"""

from pathlib import Path

from transformer.book.results import render_results

PAGE = Path(__file__).resolve().parent.parent / "book" / "results.md"

if __name__ == "__main__":
    PAGE.write_text(render_results(), encoding="utf-8")
    print(f"{PAGE.name}: written")
