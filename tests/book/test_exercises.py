"""Every exercise of every chapter: open, answerable on the page, and solved; nbval runs them."""

import base64
import json
import re
from pathlib import Path

import pytest
from generated.exercises import exercises_of

from transformer_book.exercises import find_fault

CHAPTERS = sorted((Path(__file__).parents[2] / "notebooks").glob("[0-9][0-9]_*.ipynb"))


def exercises(path):
    """By number: the question, the forms of open cells, and what open cells and solutions print."""
    found, number, inside = {}, 0, False
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source, tags = "".join(cell["source"]), cell["metadata"].get("tags", [])
        if cell["cell_type"] == "markdown":
            inside = "## Exercises" in source or (inside and not re.search("^## ", source, re.M))
            asked = re.findall(r"^\*\*(\d+)\. (.*)", source, re.M | re.S) if inside else ()
            for number, question in asked:
                found[int(number)] = dict(question=question, forms=[], open="", solved="")
        elif inside and number and "nbval-skip" not in tags:
            one, kind = found[int(number)], "solved" if "solution" in tags else "open"
            for output in cell["outputs"]:
                one["forms"] += output.get("metadata", {}).get("exercise", [])
                one[kind] += "".join(
                    output.get("text", output.get("data", {}).get("text/plain", ""))
                )
            assert "solution" not in tags or "hide-cell" in tags, cell["id"]
    return found


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_an_exercise_is_open_answered_on_the_page_and_solved(path):
    found = exercises(path)
    assert sum("○" in one["open"] for one in found.values()) >= 3
    for exercise in exercises_of(path):
        one = found[exercise.number]
        if exercise.kind in ("a number", "a choice"):
            assert one["forms"], f"exercise {exercise.number}: run the notebook again"
        if "○" in one["open"]:
            assert "✓" in one["solved"] and "○" not in one["solved"], exercise.number


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)
def test_each_foreseen_mistake_gets_its_hint(path):
    """Of the answers that the page checks; they are stored so that nobody reads them by chance."""
    for number, one in exercises(path).items():
        for form in one["forms"]:
            answer, tolerance, mistakes = json.loads(base64.b64decode(form["key"])[::-1])
            if form["kind"] == "truth":
                answer, mistakes = answer == "True", [(h, w == "True") for h, w in mistakes]
            if form["kind"] == "word":
                assert len(form["choices"]) > 1
                assert all(choice in one["question"] for choice in form["choices"]), number
            known = dict(mistakes)
            assert find_fault(answer, answer, tolerance, known) is None
            for hint, wrong in mistakes:
                assert hint in find_fault(wrong, answer, tolerance, known), number
