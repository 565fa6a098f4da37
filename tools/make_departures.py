"""Writes the measurements of the departures ledger into its page.

    python tools/make_departures.py

A test fails when the page and the record have parted.
"""

from pathlib import Path

from transformer.book.departures import measurements
from transformer.book.markers import fill_in
from transformer.lab.recipe.choices import recorded_effects

PAGE = Path(__file__).resolve().parent.parent / "book" / "departures.md"

if __name__ == "__main__":
    page = fill_in(PAGE.read_text(encoding="utf-8"), "choice", measurements(recorded_effects()))
    PAGE.write_text(page, encoding="utf-8")
    print(f"{PAGE.name}: written")
