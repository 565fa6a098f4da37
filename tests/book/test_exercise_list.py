"""The page of all exercises: nothing is missing, each has a level, and links lead to a heading."""

import json
import re

import make_exercises
import pytest

from transformer.book.anchors import anchors
from transformer.book.exercise_list import LEVELS, Exercise, exercises_of, render_exercises

ROOT = make_exercises.ROOT
CHAPTERS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def test_the_page_is_what_the_chapters_say():
    """After a change of a chapter call: python tools/make_exercises.py."""
    parts = make_exercises.parts_of(ROOT / "_toc.yml")
    assert make_exercises.PAGE.read_text(encoding="utf-8") == render_exercises(parts)


def test_every_exercise_of_every_chapter_has_a_level():
    counts = {path.name[:2]: len(exercises_of(path)) for path in CHAPTERS}
    assert counts == {chapter: len(letters) for chapter, letters in LEVELS.items()}
    assert min(counts.values()) >= 3


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_none_is_overlooked(path):
    """Each check leaves its mark in the stored output, and each exercise is numbered."""
    exercises = exercises_of(path)
    assert [each.number for each in exercises] == [*range(1, len(exercises) + 1)]
    assert all(15 < len(each.question) <= 400 for each in exercises)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    solutions = sum("solution" in cell["metadata"].get("tags", []) for cell in cells)
    assert solutions >= sum(each.kind != "open end" for each in exercises)


def test_links_lead_to_a_heading_that_is_there():
    page = make_exercises.PAGE.read_text(encoding="utf-8")
    links = set(re.findall(r"\]\(\.\./(notebooks/\d\d_\w+\.ipynb)#([\w-]+)\)", page))
    assert len(links) >= 20
    for path, anchor in links:
        assert anchor in anchors(ROOT / path), path


@pytest.fixture
def notebook(tmp_path):
    def code(source, *tags):
        return dict(cell_type="code", source=source, metadata=dict(tags=tags))

    def text(source):
        return dict(cell_type="markdown", source=source.splitlines(keepends=True), metadata={})

    cells = [
        text("**9. Not here.** This stands before the heading."),
        text("## Exercises\n\nAll checked.\n\n**1. Write a mask** for Eq. (1), see\n[a](b.ipynb)."),
        code("def mask(n):\n    return ...  # your code\n\n\ncheck_mask(mask)"),
        code("answer = ...  # a string\ncheck(answer)", "solution"),
        text(f"**2. Count.** It is long. {'No. ' * 80}How many?"),
        code("answer = ...  # a number\ncheck(answer)"),
        code("check(2)  # your code may differ", "solution"),
        text("Said in between.\n\n**3. Predict.** One thing. Or `two`? Or three?"),
        code("answer = ...  # a string\ncheck(answer)"),
        text("**4. Try.** There is no check for this one.\n\n## References\n\n**5. No.** More."),
        code("check(answer)"),
    ]
    path = tmp_path / "03_here.ipynb"
    path.write_text(json.dumps(dict(cells=cells)))
    return path


def test_exercises_are_read_from_a_chapter(notebook):
    assert exercises_of(notebook) == [
        Exercise("03", 1, "Write a mask", "Write a mask for Eq. (1), see a.", "function"),
        Exercise("03", 2, "Count", "How many?", "number"),
        Exercise("03", 3, "Predict", "One thing. Or `two`?", "prediction"),
        Exercise("03", 4, "Try", "There is no check for this one.", "open end"),
    ]


def test_the_page_sorts_by_part_and_level(notebook):
    page = render_exercises({"One": [notebook]})  # the levels are those of chapter 3: e m e m
    titles = re.findall(r"^### (.*)|^\| \[3\.(\d)", page, re.M)
    assert titles == [
        ("One: easy", ""),
        ("", "1"),
        ("", "3"),
        ("One: medium", ""),
        ("", "2"),
        ("", "4"),
    ]
    assert "4 exercises: 2 easy, 2 medium, 0 hard" in page
    link = "[3.1 Write a mask](../notebooks/03_here.ipynb#exercises)"
    assert f"| {link} | Write a mask for Eq. (1), see a. | code |" in page


@pytest.mark.parametrize("chapter, number", [("03", 5), ("99", 1)])
def test_an_exercise_without_a_level_is_named(chapter, number):
    with pytest.raises(LookupError, match=f"exercise {number} of chapter {chapter} has no level"):
        assert Exercise(chapter, number, "a", "b", "number").level
