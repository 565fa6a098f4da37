"""Writes the figures of the page on scale into it.

    python tools/make_scale.py

A test fails when the page and what is worked out have parted.
"""

from pathlib import Path

from transformer.book.markers import fill_in
from transformer.book.scale import figures

PAGE = Path(__file__).resolve().parent.parent / "book" / "scale.md"

if __name__ == "__main__":
    PAGE.write_text(
        fill_in(PAGE.read_text(encoding="utf-8"), "figure", figures()), encoding="utf-8"
    )
    print(f"{PAGE.name}: written")
