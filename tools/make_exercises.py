"""Writes the page that lists all exercises, from the chapters and the levels given to them.

    python tools/make_exercises.py

A test fails when the page and the chapters have parted, so run this after changing an exercise.
"""

from pathlib import Path

import yaml

from transformer.book.exercise_list import render_exercises

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "book" / "exercises.md"


def parts_of(contents: Path) -> dict[str, list[Path]]:
    """The notebooks of each part of the book, by the part's title."""
    toc = yaml.safe_load(contents.read_text(encoding="utf-8"))
    parts = {}
    for part in toc["parts"]:
        files = [chapter["file"] for chapter in part["chapters"]]
        chapters = [contents.parent / f"{file}.ipynb" for file in files if "notebooks/" in file]
        if chapters:
            parts[part["caption"]] = chapters
    return parts


if __name__ == "__main__":
    PAGE.write_text(render_exercises(parts_of(ROOT / "_toc.yml")), encoding="utf-8")
    print(f"{PAGE.name}: written")
