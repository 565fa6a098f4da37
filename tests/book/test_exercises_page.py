"""Exercises on the page: the form has what the check has, and the order helps the reader."""

import base64
import json

import exercises_page
import pytest
import torch
from docutils import nodes
from docutils.utils import new_document

from transformer_book.exercises import form, forms

HINT = "Two stacks."


def decoded(key):
    return json.loads(base64.b64decode(key)[::-1])


@pytest.mark.parametrize(
    ("expected", "kind", "choices", "right"),
    [
        (18, "number", [], 18),
        (torch.tensor(0.5), "number", [], 0.5),
        ("same", "word", ["other", "same"], "same"),
        (True, "truth", ["False", "True"], "True"),
    ],
)
def test_a_form_holds_the_check_and_hides_the_answer(expected, kind, choices, right):
    wrong = {"number": torch.tensor(6), "word": "other", "truth": False}[kind]
    made = form("layers", expected, 0.01, {HINT: wrong})
    assert (made["name"], made["kind"], made["choices"]) == ("layers", kind, choices)
    shown = str(wrong) if kind == "truth" else wrong
    assert decoded(made["key"]) == [right, 0.01, [[HINT, shown]]]
    written = exercises_page.answer_form("1.1", [made])
    assert HINT not in written
    assert choices or str(right) not in written


def test_a_tensor_has_no_form_and_a_list_of_judgements_one_each():
    assert forms("weights", torch.ones(2)) == []
    made = forms("judgements", torch.tensor([True, False]))
    assert [each["name"] for each in made] == ["statement 1", "statement 2"]
    assert [decoded(each["key"])[0] for each in made] == ["True", "False"]


def test_choices_come_in_the_order_of_the_question():
    made = form("what changes", "scores", mistakes={"a": "nothing", "b": "all weights"})
    written = exercises_page.answer_form("2.1", [made], 'Is it "nothing", "scores", "all weights"?')
    places = [written.index(f'value="{choice}"') for choice in ("nothing", "scores", "all weights")]
    assert places == sorted(places)


def cell(source, tags=(), prompt="", output=None):
    outputs = [] if output is None else [output]
    mystnb = {"mystnb": {"code_prompt_show": prompt}} if prompt else {}
    return {"source": source, "outputs": outputs, "metadata": {"tags": [*tags], **mystnb}}


CELLS = [
    cell("def check_count(answer): ...", ["hide-input"], "Show the check (it gives it away)"),
    cell(
        "answer = ...  # a number\ncheck_count(answer)",
        output={
            "data": {"text/plain": "○ layers: nothing to check yet."},
            "metadata": {"exercise": forms("layers", 18)},
        },
    ),
    cell("check_count(18)", ["hide-cell", "solution"], output={"text": "✓ layers: right."}),
    cell(
        "def double(x):\n    return ...  # your code",
        output={"text": "○ double: nothing to check yet."},
    ),
    cell("def double(x): return 2 * x", ["hide-cell", "solution"]),
]


@pytest.fixture
def document():
    """A chapter with two exercises, as MyST parses it: the check comes before the answer."""

    def code(index):
        container = nodes.container(nb_element="cell_code", cell_index=index)
        container += nodes.literal_block("", CELLS[index]["source"])
        if CELLS[index]["outputs"]:
            output = nodes.container(nb_element="cell_code_output")
            output += nodes.literal_block("", "an output")
            container += output
        return container

    def text(bold, rest):
        return nodes.paragraph("", "", nodes.Text(""), nodes.strong("", bold), nodes.Text(rest))

    made = new_document("chapter")
    first = [text("1. Count.", " How many layers?"), code(0), code(1), code(2)]
    second = [text("2. Double", " x."), code(3), code(4)]
    remark = nodes.paragraph("", "A remark.")
    title, intro = nodes.title("", "Exercises"), nodes.paragraph("", "They have checks.")
    made += nodes.section("", title, intro, *first, remark, *second, ids=["exercises"])
    return made


def test_an_exercise_is_a_block_with_number_anchor_and_order(document):
    titles = exercises_page.rebuilt(document, "notebooks/20_heads", CELLS, None)
    assert titles == ["20.1 Count", "20.2 Double"]
    blocks = [b for b in document.findall(nodes.container) if "exercise" in b["classes"]]
    assert [block["ids"] for block in blocks] == [["exercise-20-1"], ["exercise-20-2"]]
    count, double = (block.astext() for block in blocks)
    order = ["20.1 Count", "exercise-answer", "Answer in Python", "# a number", "def check_count",
             "</details>", "check_count(18)"]  # fmt: skip
    assert [count.index(part) for part in order] == sorted(count.index(part) for part in order)
    assert "an output" not in count.split("</details>")[0]  # "nothing to check yet"
    assert "exercise-answer" not in double and "Needs Python" in double
    assert "A remark." not in count + double and "A remark." in document.astext()
    assert '"tenfold"' in document.astext()  # the hints, once


def test_a_run_link_works_without_an_address_of_the_book():
    offline = exercises_page.run_links("notebooks/20_heads", None)
    assert 'href="../_sources/notebooks/20_heads.ipynb" download="20_heads.ipynb"' in offline
    assert "http" not in offline
    online = exercises_page.run_links("notebooks/20_heads", "https://colab/x")
    assert online.index("https://colab/x") < online.index("_sources")
