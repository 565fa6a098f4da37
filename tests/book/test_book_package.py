"""Checks of exercises, source listings, attention maps, tables and figures."""

import base64
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.self_contained import self_contained
from transformer.model.attention import MultiHeadAttention, masked_softmax
from transformer_book import AttentionMap, Table, check, check_function, show_source
from transformer_book.exercises import WrongAnswer, find_fault

ROOT = Path(__file__).resolve().parents[2]
WEIGHTS = torch.tensor([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]])
NUMBERS = torch.tensor([[0.0, 1.0, 2.0], [5.0, 4.0, 6.0], [7.0, 8.0, 10.0]])


@pytest.mark.parametrize(
    ("answer", "right", "fault"),
    [
        (WEIGHTS.T, WEIGHTS, "last two axes"),
        (WEIGHTS > 0.2, WEIGHTS, "got truth values"),
        (WEIGHTS * 2, WEIGHTS, "do not sum to 1"),
        (7.05, 7, "rounded"),
        (700, 7, "factor of ten"),
        (-7, 7, "sign"),
        (-NUMBERS, NUMBERS, "signs"),
        (NUMBERS.flip(0), NUMBERS, "places"),
        (NUMBERS > 2, NUMBERS <= 2, "wrong way round"),
        (NUMBERS**2, NUMBERS, "by hand"),
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


def test_right_answers_of_every_kind_pass():
    for answer in (WEIGHTS.double(), WEIGHTS.numpy(), WEIGHTS.tolist()):
        assert find_fault(answer, WEIGHTS) is None
    assert find_fault(np.float32(7), 7) is find_fault(torch.tensor(7), 7) is None
    assert find_fault(np.bool_(True), True) is find_fault(" A", "a") is None


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
        (lambda x: 1, torch.zeros(9), r"Called with: a tensor of shape \(9,\)"),
    ],
)
def test_faults_of_functions_are_named(function, case, fault):
    before = str(case)
    with pytest.raises(WrongAnswer, match=fault):
        check_function(function, lambda x: 2, [(case,)], name="f")
    assert str(case) == before


@pytest.mark.parametrize("thing", [masked_softmax, MultiHeadAttention.forward])
def test_source_is_that_of_the_file(thing):
    source = show_source(thing)
    lines = (ROOT / source.path).read_text().splitlines()[source.first_line - 1 : source.last_line]
    indent = len(lines[0]) - len(lines[0].lstrip())
    assert source.code.splitlines() == [line[indent:] for line in lines]
    assert lines[0].strip().startswith("def ") and thing.__name__ in lines[0]
    assert '"""' not in show_source(thing, docstring=False).code


def test_a_map_carries_weights_labels_a_picture_and_words():
    data = self_contained(
        lambda: AttentionMap(WEIGHTS, ["q0", "q1"], ["a", "b", "</script>"]), 50_000
    )
    packed = np.frombuffer(base64.b64decode(data["weights"]), dtype="<u2").reshape(2, 3)
    assert np.allclose(packed / 65535, WEIGHTS.numpy(), atol=1e-4)


def test_tables_in_html_text_and_markdown():
    table = Table(["a", "long name"], [["<b>", 1], ["x|y", 22]])
    assert "&lt;b&gt;" in table._repr_html_() and "<b>" not in table._repr_html_()
    assert repr(table).splitlines() == ["a   | long name", "<b> | 1", "x|y | 22"]
    assert table.markdown().splitlines()[1:] == ["| --- | --- |", "| <b> | 1 |", "| x\\|y | 22 |"]
