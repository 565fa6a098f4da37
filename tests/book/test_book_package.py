"""Checks of exercises, source listings, attention maps, tables and figures."""

import base64
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from tests.self_contained import self_contained
from transformer.model.attention import MultiHeadAttention, masked_softmax
from transformer_book import (
    AttentionMap,
    Table,
    check,
    check_function,
    setup,
    show_source,
)
from transformer_book.exercises import WrongAnswer, find_fault

ROOT = Path(__file__).resolve().parents[2]
WEIGHTS = torch.tensor([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]])
NUMBERS = torch.tensor([[0.0, 1.0, 2.0], [5.0, 4.0, 6.0], [7.0, 8.0, 10.0]])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


@pytest.mark.parametrize(
    ("answer", "right", "fault"),
    [
        (WEIGHTS.T, WEIGHTS, "last two axes"),
        (WEIGHTS > 0.2, WEIGHTS, "got truth values"),
        (WEIGHTS * 2, WEIGHTS, "do not sum to 1"),
        (WEIGHTS - 0.2, WEIGHTS, "negative"),
        (WEIGHTS.where(WEIGHTS != 0.4, torch.nan), WEIGHTS, "NaN"),
        ("text", WEIGHTS, "got str"),
        (7.05, 7, "rounded"),
        (700, 7, "factor of ten"),
        (-7, 7, "sign"),
        ([7], 7, "single number"),
        (-NUMBERS, NUMBERS, "signs"),
        (NUMBERS + 3, NUMBERS, "same amount"),
        (NUMBERS.flip(0), NUMBERS, "places"),
        (NUMBERS > 2, NUMBERS <= 2, "wrong way round"),
        (NUMBERS**2, NUMBERS, "by hand"),
        ([[1], [1, 2]], NUMBERS, "equally long"),
        ("c", "a", "Which words"),
        (1, True, "True or False"),
    ],
)
def test_a_fault_is_named(answer, right, fault):
    assert fault in find_fault(answer, right)


def test_the_first_difference_is_located():
    answer = WEIGHTS.clone()
    answer[1, 0], answer[1, 1] = 0.2, 0.4
    fault = find_fault(answer, WEIGHTS)
    assert "2 of 6 values differ, first at [1, 0]: 0.2, expected 0.3." in fault


@pytest.mark.parametrize("wrong", [WEIGHTS / 2, WEIGHTS[0], WEIGHTS / 0, "b"])
def test_a_foreseen_mistake_gets_its_hint(wrong):
    right = "a" if isinstance(wrong, str) else WEIGHTS
    assert find_fault(wrong, right, mistakes={"Hint.": wrong}).endswith("Hint.")


def test_right_answers_of_every_kind_pass():
    for answer in (WEIGHTS.double(), WEIGHTS.numpy(), WEIGHTS.tolist()):
        assert find_fault(answer, WEIGHTS) is None
    assert find_fault(np.float32(7), 7) is find_fault(torch.tensor(7), 7) is None
    assert find_fault(np.bool_(True), True) is find_fault(" A", "a") is None


def test_a_number_is_not_given_away():
    with pytest.raises(WrongAnswer, match="^n: 9.5 is too large. [^7]*$"):
        check(9.5, 7, name="n")


@pytest.mark.parametrize("open_answer", [None, ...])
def test_open_exercises_pass(open_answer, capsys):
    check(open_answer, 3)
    check_function(lambda x: open_answer, lambda x: x, [(torch.ones(2),)], name="f")
    check_function(open_answer, lambda x: x, [(1,)], name="f")
    assert capsys.readouterr().out.count("○") == 3


def test_functions_are_checked_on_every_case(capsys):
    cases, double = [(torch.zeros(2),), (torch.ones(2),)], torch.tensor(2.0).mul
    check_function(lambda x: x + x, double, cases, name="f")
    assert capsys.readouterr().out == "✓ f: right in both cases.\n"
    with pytest.raises(WrongAnswer, match="f, case 2 of 2: .*Not squared"):
        check_function(lambda x: x * x, double, cases, "f", mistakes={"Not squared.": torch.square})


@pytest.mark.parametrize(
    ("function", "case", "fault"),
    [
        (lambda x: x.view(3), torch.ones(2), "it raised RuntimeError"),
        (lambda x: x.mul_(2), torch.ones(2), "in place"),
        (lambda x: x.sort() or 0, [3, 2], "in place"),
        (3, 1, "expected a function, got 3"),
        (lambda x: 1, torch.zeros(9), r"Called with: a tensor of shape \(9,\)"),
    ],
)
def test_faults_of_functions_are_named(function, case, fault):
    before = str(case)
    with pytest.raises(WrongAnswer, match=fault):
        check_function(function, lambda x: 2, [(case,)], name="f")
    assert str(case) == before


def test_a_notebook_shows_only_the_message():
    assert WrongAnswer("f: no.")._render_traceback_() == ["✗ f: no."]


@pytest.mark.parametrize("thing", [masked_softmax, MultiHeadAttention, MultiHeadAttention.forward])
def test_source_is_that_of_the_file(thing):
    source = show_source(thing)
    lines = (ROOT / source.path).read_text().splitlines()[source.first_line - 1 : source.last_line]
    indent = len(lines[0]) - len(lines[0].lstrip())
    assert source.code.splitlines() == [line[indent:] for line in lines]
    assert lines[0].strip().startswith(("def ", "class ")) and thing.__name__ in lines[0]
    place = f"`{source.path}, lines {source.first_line}-{source.last_line}`"
    assert source._repr_markdown_() == f"{place}\n\n```python\n{source.code}\n```"
    assert '"""' not in show_source(thing, docstring=False).code.partition("\n    def ")[0]


def test_a_map_carries_weights_labels_a_picture_and_words():
    labels = ["q0", "q1"], ["a", "b", "</script>"]
    shown = AttentionMap(WEIGHTS, *labels)
    data = self_contained(lambda: shown, 50_000)
    packed = np.frombuffer(base64.b64decode(data["weights"]), dtype="<u2").reshape(2, 3)
    assert np.allclose(packed / 65535, WEIGHTS.numpy(), atol=1e-4)
    assert (data["queries"], data["keys"]) == labels
    assert "q0 to a, q1 to </script>" in repr(shown)


def test_tables_in_html_text_and_markdown():
    table = Table(["a", "long name"], [["<b>", 1], ["x|y", 22]])
    assert "&lt;b&gt;" in table._repr_html_() and "<b>" not in table._repr_html_()
    assert repr(table).splitlines() == ["a   | long name", "<b> | 1", "x|y | 22"]
    assert table.markdown().splitlines()[1:] == ["| --- | --- |", "| <b> | 1 |", "| x\\|y | 22 |"]
    with pytest.raises(ValueError, match="must have 2 cells"):
        Table(["a", "b"], [["only one"]])


def test_setup_makes_runs_repeatable():
    draws = []
    for _ in range(2):
        setup(seed=3)
        draws.append((torch.rand(1).item(), np.random.rand(), torch.get_num_threads()))
    assert draws[0] == draws[1] and draws[0][2] == 1
