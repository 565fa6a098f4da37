"""Exercises on the page: answers are checked, explained and remembered as in the notebook."""

import json

import exercises_page
import pytest

from transformer_book.exercises import HINTS, find_fault, form

CHAPTER = "notebooks/02_attention.html"
CHOICE, NUMBER = "#exercise-2-1", "#exercise-2-3"
CAPACITY = dict(
    expected=403.4287934927351,
    tolerance=0.01,
    mistakes={"That is the capacity with sharpness 1.": 33.11545195869231},
)
COUNT = dict(expected=12, tolerance=0, mistakes={"Two stacks.": 6})
CHECKS = [  # what is expected, how the notebook reads an answer, and what a reader may write
    (CAPACITY, float, ["403.43", "398", "33.115", "-403", "0", "380", "500", "30", "1e5", "5000"]),
    (COUNT, float, ["12", "6", "13", "12.5"]),
    (dict(expected=0.0), float, ["0", "1e-6", "3"]),
    (dict(expected="keys", mistakes={"Try again.": "values"}), str, ["keys", "values"]),
    (dict(expected=False), lambda text: text == "True", ["True", "False"]),
]


@pytest.fixture
def exercise(visit, html):
    """Make a page with one exercise and the book's script."""

    def make(**check):
        page = visit().page
        shown = exercises_page.answer_form("1.1", [form(name="it", **check)])
        hints = f'<script type="application/json" id="exercise-hints">{json.dumps(HINTS)}</script>'
        page.set_content(shown + hints)
        page.add_script_tag(path=html / "_static" / "exercises.js")
        return page

    return make


def answer(block, text):
    """Give an answer; return what the page says."""
    if block.locator('input[type="text"]').count():
        block.locator('input[type="text"]').fill(text)
    else:
        block.locator(f'input[value="{text}"]').check()
    block.locator("button", has_text="Check").click()
    return block.locator("output").inner_text()


@pytest.mark.parametrize(("check", "given", "answers"), CHECKS)
def test_the_page_says_what_the_notebook_says(exercise, check, given, answers):
    page = exercise(**check)
    for text in answers:
        fault = find_fault(given(text), **check)
        wanted = f"✗ {fault[0].upper()}{fault[1:]}" if fault else "✓ Right."
        assert answer(page, text) == wanted.replace("1e+05", "100000"), text


def test_ways_to_write_a_number(exercise):
    page = exercise(expected=1 / 8)
    for text in ("1/8", "12.5 %", ".125", "1.25e-1"):
        assert answer(page, text) == "✓ Right.", text
    for text in ("1/0", "an eighth", "1/2/4", "0,125"):
        assert answer(page, text).startswith("✗ Write a number"), text
    assert answer(exercise(expected=512_000_000), "512,000,000") == "✓ Right."


def test_an_answer_is_given_by_keyboard_and_remembered(visit, address):
    found = visit()
    found.open(address + CHAPTER)
    assert answer(found.page.locator(CHOICE), "nothing").startswith("✗ Not 'nothing'. q·(k + c)")
    assert answer(found.page.locator(CHOICE), "scores") == "✓ Right."
    field = found.page.locator(f"{NUMBER} input")
    field.focus()
    field.press_sequentially("403")
    field.press("Enter")
    output = found.page.locator(f"{NUMBER} output")
    assert output.inner_text() == "✓ Right." and output.get_attribute("aria-live") == "polite"
    found.page.reload()
    assert found.page.locator(f"{CHOICE} output").inner_text() == "✓ Right."
    assert field.input_value() == "403" and found.errors == []
