"""Exercises on the page: answers are checked, explained and remembered as in the notebook."""

import json

import exercises_page
import pytest
from lxml import html as markup

from transformer_book.exercises import HINTS, find_fault, form

CHAPTER = "notebooks/02_attention.html"
CHOICE, NUMBER, CODE = "#exercise-2-1", "#exercise-2-3", "#exercise-2-2"
CAPACITY = dict(
    expected=403.4287934927351,
    tolerance=0.01,
    mistakes={"That is the capacity with sharpness 1.": 33.11545195869231},
)
CHECKS = {  # the right answer, the tolerance, known mistakes; and what a reader may write
    "number": (
        {**CAPACITY, "name": "capacity"},
        ["403.43", "400", "398", "33.115", "-403", "0", "380", "410", "500", "30", "1e5", "5000"],
    ),
    "whole number": (
        dict(expected=12, tolerance=0, name="a count", mistakes={"Two stacks.": 6}),
        ["12", "6", "13", "12.5"],
    ),
    "zero": (dict(expected=0.0, name="nothing"), ["0", "1e-6", "3"]),
    "word": (
        dict(expected="keys", name="a word", mistakes={"Try again.": "values"}),
        ["keys", " Keys ", "values"],
    ),
    "truth": (dict(expected=False, name="a truth"), ["True", "False"]),
}


@pytest.fixture
def exercise(visit, html):
    """Make a page with one exercise and the book's script."""

    def make(**check):
        found = visit()
        shown = exercises_page.answer_form("1.1", [form(**check)])
        hints = f'<script type="application/json" id="exercise-hints">{json.dumps(HINTS)}</script>'
        found.page.set_content(shown + hints)
        found.page.add_script_tag(path=html / "_static" / "exercises.js")
        return found.page

    return make


def answer(block, text):
    """Give an answer; return what the page says."""
    if block.locator('input[type="text"]').count():
        block.locator('input[type="text"]').fill(text)
    else:
        block.locator(f'input[value="{text}"]').check()
    block.locator("button", has_text="Check").click()
    return block.locator("output").inner_text()


@pytest.mark.parametrize("kind", CHECKS)
def test_the_page_says_what_the_notebook_says(exercise, kind):
    check, answers = CHECKS[kind]
    page = exercise(**check)
    rest = {key: value for key, value in check.items() if key != "name"}
    for text in answers:
        if kind == "word" and text != text.strip().lower():
            continue  # a choice is never written with other letters
        given = {"word": str, "truth": lambda t: t == "True"}.get(kind, float)(text)
        fault = find_fault(given, **rest)
        wanted = f"✗ {fault[0].upper()}{fault[1:]}" if fault else "✓ Right."
        assert answer(page, text) == wanted.replace("1e+05", "100000"), text


@pytest.mark.parametrize(
    ("text", "right"),
    [("1/8", True), ("12.5 %", True), ("0.125", True), (".125", True), ("1.25e-1", True),
     ("1/0", False), ("an eighth", False), ("1/2/4", False), ("0,125", False)],
)  # fmt: skip
def test_ways_to_write_a_number(exercise, text, right):
    said = answer(exercise(name="a share", expected=1 / 8), text)
    assert said == ("✓ Right." if right else f"✗ {said[2:]}")
    assert right or said.startswith("✗ Write a number")


def test_thousands_may_have_commas(exercise):
    assert answer(exercise(name="floats", expected=512_000_000), "512,000,000") == "✓ Right."


def test_an_answer_is_remembered(visit, address):
    found = visit()
    found.open(address + CHAPTER)
    block = found.page.locator(CHOICE)
    assert answer(block, "nothing").startswith("✗ Not 'nothing'. q·(k + c)")
    assert answer(block, "scores") == "✓ Right."
    assert answer(found.page.locator(NUMBER), "2981").startswith("✗ 2981 is too large. The size")
    found.page.reload()
    assert found.page.locator(f"{CHOICE} output").inner_text() == "✓ Right."
    assert found.page.locator(f"{NUMBER} input").input_value() == "2981"
    assert found.errors == []


def test_keyboard_alone_answers(visit, address):
    found = visit()
    found.open(address + CHAPTER)
    field = found.page.locator(f"{NUMBER} input")
    field.focus()
    field.press_sequentially("403")
    field.press("Enter")
    output = found.page.locator(f"{NUMBER} output")
    assert output.inner_text() == "✓ Right." and output.get_attribute("aria-live") == "polite"
    label = found.page.locator(f'{NUMBER} label[for="{field.get_attribute("id")}"]')
    assert label.inner_text() == "capacity with sharpness 2"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_phone_shows_all_of_an_exercise(visit, address, theme):
    found = visit(width=390, theme=theme)
    found.open(address + CHAPTER)
    for name in (CHOICE, NUMBER, CODE):
        cut = found.page.locator(f"{name} *:visible").evaluate_all(
            "all => all.filter(e => e.getBoundingClientRect().right > innerWidth + 1).length"
        )
        assert cut == 0, name


def test_without_scripts_the_page_says_how_to_run_the_chapter(visit, address):
    found = visit(java_script_enabled=False)
    found.page.goto(address + CHAPTER)
    block = found.page.locator(CHOICE)
    assert not block.locator("form").is_visible()
    assert "run the chapter in Python" in block.locator(".exercise-without").inner_text()
    assert found.page.locator(f"{CODE} a[download]").first.is_visible()


def test_exercises_have_numbers_anchors_and_an_order(html):
    for path in sorted((html / "notebooks").glob("*.html")):
        chapter = int(path.name[:2])
        tree = markup.document_fromstring(path.read_text(encoding="utf-8"))
        blocks = tree.xpath("//div[contains(concat(' ', @class, ' '), ' exercise ')]")
        assert len(blocks) >= 3, path.name
        for number, block in enumerate(blocks, 1):
            assert block.get("id") == f"exercise-{chapter}-{number}"
            assert block.text_content().strip("#\n ").startswith(f"{chapter}.{number} ")
            assert "nothing to check yet" not in block.text_content()
            marks = ("exercise-answer", "exercise-run", "Show the check", "tag_solution")
            text = markup.tostring(block, encoding="unicode")
            places = [text.find(mark) for mark in marks if mark in text]
            assert places == sorted(places), block.get("id")
