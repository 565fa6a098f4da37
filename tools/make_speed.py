"""Writes the tables of the speed page from the record of `make bench`.

    python tools/make_speed.py

A test fails when the page and the record have parted.
"""

from pathlib import Path

from transformer.book.markers import fill_in
from transformer.book.speed import blocks, recorded_speed

PAGE = Path(__file__).resolve().parent.parent / "book" / "speed.md"

if __name__ == "__main__":
    page = fill_in(PAGE.read_text(encoding="utf-8"), "speed", blocks(recorded_speed()))
    PAGE.write_text(page, encoding="utf-8")
    print(f"{PAGE.name}: written")
