"""What chapters rely on: checks that name the fault, source that is the file's, maps that say what
they hold, one style that can be told apart."""

import base64
import json
import re
import subprocess
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from transformer.book import (
    AttentionMap,
    Table,
    check,
    check_function,
    figure,
    name_line,
    plot_runs,
    ramp,
    setup,
    show_source,
    significant,
)
from transformer.book.exercises import WrongAnswer, find_fault
from transformer.book.figures import COLOURS
from transformer.model.attention import MultiHeadAttention, masked_softmax

ROOT = Path(__file__).resolve().parents[2]
WEIGHTS = torch.tensor([[0.7, 0.2, 0.1], [0.3, 0.3, 0.4]])
NUMBERS = torch.tensor([[0.0, 1.0, 2.0], [5.0, 4.0, 6.0], [7.0, 8.0, 10.0]])


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


# --- exercises ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (WEIGHTS.T, "the shape is (3, 2), expected (2, 3). Are the last two axes"),
        (WEIGHTS[None], "An axis of size 1"),
        (torch.ones(5), "the shape is (5,)"),
        (WEIGHTS > 0.2, "expected numbers, got truth values"),
        (WEIGHTS * 2, "Your rows do not sum to 1 (the first sums to 2)"),
        (WEIGHTS - 0.2, "A weight is negative"),
        (WEIGHTS.where(WEIGHTS != 0.4, torch.nan), "it holds NaN"),
        ("text", "expected numbers, got str"),
    ],
)
def test_fault_is_named(answer, message):
    assert message in find_fault(answer, WEIGHTS)


def test_first_difference_is_located():
    answer = WEIGHTS.clone()
    answer[1, 0], answer[1, 1] = 0.2, 0.4
    fault = find_fault(answer, WEIGHTS)
    assert "2 of 6 values differ, first at [1, 0]: 0.2, expected 0.3." in fault
    assert "sum to 1" not in fault


def test_known_mistake_is_hinted_at():
    fault = find_fault(WEIGHTS / 2, WEIGHTS, mistakes={"Halved?": WEIGHTS / 2, "No.": WEIGHTS})
    assert fault.endswith("Halved?")


@pytest.mark.parametrize("answer", [WEIGHTS, WEIGHTS.double(), WEIGHTS.numpy(), WEIGHTS.tolist()])
def test_right_answers_of_every_kind_pass(answer, capsys):
    check(answer, WEIGHTS, name="weights")
    assert capsys.readouterr().out == "✓ weights: right.\n"


def test_numbers_are_not_given_away():
    with pytest.raises(WrongAnswer, match="^n: 5 is too small. The size is about right: is a"):
        check(5, 7, name="n")
    with pytest.raises(WrongAnswer, match="^n: 9.5 is too large. [^7]*$"):
        check(9.5, 7, name="n")


@pytest.mark.parametrize(
    ("answer", "right", "hint"),
    [
        (7.05, 7, "Very close: was something rounded"),
        (6.2, 7, "Close: is a small part missing"),
        (700, 7, "more than a factor of ten"),
        (-7, 7, "Its sign is wrong"),
        (0, 7, "Is a 0 right here?"),
        (7, 0, "What cancels?"),
        ([7], 7, "expected a single number"),
        (WEIGHTS - 1, WEIGHTS, "A weight is negative"),
        (-NUMBERS, NUMBERS, "All signs are wrong"),
        (3 * NUMBERS, NUMBERS, "All values are 3 times the right ones"),
        (NUMBERS + 3, NUMBERS, "off by the same amount"),
        (0 * NUMBERS, NUMBERS, "zero everywhere"),
        (NUMBERS.T, NUMBERS, "Rows and columns are the wrong way round"),
        (NUMBERS.flip(0), NUMBERS, "their places are not"),
        (NUMBERS > 2, NUMBERS <= 2, "True and False are the wrong way round"),
        (NUMBERS**2, NUMBERS, "work it out by hand"),
        ([[1], [1, 2]], NUMBERS, "all rows equally long"),
        ("c", "a", "Which words does the question offer?"),
        (False, True, "step by step"),
    ],
)
def test_an_answer_that_nobody_foresaw_gets_a_hint(answer, right, hint):
    assert hint in find_fault(answer, right)


def test_choices_are_named_if_there_are_several():
    assert find_fault("c", "a", mistakes={"No.": "b"}) == "not 'c'. Choose one of: 'a', 'b'."
    assert find_fault("b ", "a", mistakes={"No.": "B"}) == "not 'b '. No."
    assert find_fault(" A", "a") is None


def test_a_foreseen_mistake_of_another_shape_or_with_nan_gets_its_hint():
    assert find_fault(NUMBERS[0], NUMBERS, mistakes={"One row.": NUMBERS[0]}).endswith("One row.")
    wrong = NUMBERS / 0
    assert find_fault(wrong, NUMBERS, mistakes={"By zero.": wrong}).endswith("By zero.")


def test_numbers_of_every_kind_are_numbers():
    for seven in (np.float32(7), torch.tensor(7), torch.tensor(7.0)):
        assert find_fault(seven, 7) is None
    assert find_fault(torch.tensor(True), True) is None
    assert find_fault(np.bool_(True), True) is None


def test_words_and_truth_values():
    check("scores", "scores")
    check(True, True)
    with pytest.raises(WrongAnswer, match="expected True or False, got 1"):
        check(1, True)
    with pytest.raises(WrongAnswer, match="not False"):
        check(False, True)
    with pytest.raises(WrongAnswer, match="Think again"):
        check("a", "b", mistakes={"Think again": "a"})


@pytest.mark.parametrize("open_answer", [None, ...])
def test_open_exercises_do_no_harm(open_answer, capsys):
    check(open_answer, 3)
    check_function(lambda x: open_answer, lambda x: x, [(torch.ones(2),)], name="f")
    assert capsys.readouterr().out.count("nothing to check yet") == 2


def test_functions_are_checked_on_every_case(capsys):
    cases = [(torch.zeros(2),), (torch.ones(2),)]
    check_function(lambda x: x + x, lambda x: 2 * x, cases, name="f")
    assert capsys.readouterr().out == "✓ f: right in all 2 cases.\n"
    with pytest.raises(WrongAnswer, match="f, case 2 of 2: .*Not squared"):
        check_function(
            lambda x: x * x,
            lambda x: 2 * x,
            cases,
            name="f",
            mistakes={"Not squared.": torch.square},
        )


def test_functions_that_raise_or_change_their_arguments():
    with pytest.raises(WrongAnswer, match="it raised RuntimeError"):
        check_function(lambda x: x.view(3), lambda x: x, [(torch.ones(2),)], name="f")
    case = torch.ones(2)
    with pytest.raises(WrongAnswer, match="in place"):
        check_function(lambda x: x.mul_(2), lambda x: 2 * x, [(case,)], name="f")
    assert case.equal(torch.ones(2))
    for argument in ([3, 2], np.array([3, 2])):
        with pytest.raises(WrongAnswer, match="in place"):
            check_function(lambda x: x.sort() or 0, len, [(argument,)], name="f")
        assert argument[0] == 3


def test_functions_are_told_what_they_were_called_with():
    with pytest.raises(
        WrongAnswer, match=r"Called with: \[1.0, 2.0\], 3, a tensor of shape \(9,\)"
    ):
        cases = [(torch.tensor([1.0, 2.0]), 3, torch.zeros(9))]
        check_function(lambda *a: 1, lambda *a: 2, cases, name="f")
    with pytest.raises(WrongAnswer, match="it returns nothing. Is a return missing"):
        check_function(lambda x: x if x < 2 else None, lambda x: x, [(1,), (2,)], name="f")
    with pytest.raises(WrongAnswer, match="expected a function, got 3"):
        check_function(3, lambda x: x, [(1,)], name="f")
    check_function(..., lambda x: x, [(1,)], name="f")


def test_a_notebook_shows_only_the_message():
    assert WrongAnswer("f: no.")._render_traceback_() == ["✗ f: no."]


# --- source ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "thing", [masked_softmax, MultiHeadAttention, MultiHeadAttention.split_heads]
)
def test_source_is_what_the_file_holds(thing):
    source = show_source(thing)
    lines = (ROOT / source.path).read_text().splitlines()[source.first_line - 1 : source.last_line]
    indent = len(lines[0]) - len(lines[0].lstrip())
    assert source.code.splitlines() == [line[indent:] for line in lines]
    assert lines[0].strip().startswith(("def ", "class ")) and thing.__name__ in lines[0]
    link = f"/blob/main/{source.path}#L{source.first_line}-L{source.last_line})"
    assert link in source._repr_markdown_()


def test_source_without_docstring_still_computes_the_same():
    code = show_source(masked_softmax, docstring=False).code
    assert '"""' not in code and "# softmax of a row" in code
    names = dict(vars(sys.modules["transformer.model.attention"]))
    exec(code, names)
    assert names["masked_softmax"](WEIGHTS).equal(WEIGHTS.softmax(-1))


def test_source_from_elsewhere_is_refused():
    with pytest.raises(ValueError, match="must be defined in the package"):
        show_source(json.dumps)
    with pytest.raises(TypeError, match="written in Python"):
        show_source(len)


# --- attention map --------------------------------------------------------------------------


def bundle(**options):
    return AttentionMap(
        WEIGHTS, ["q0", "q1"], ["a", "b", "</script>"], **options
    )._repr_mimebundle_()


def test_map_carries_weights_and_labels():
    html = bundle()["text/html"]
    data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', html).group(1))
    packed = np.frombuffer(base64.b64decode(data["weights"]), dtype="<u2").reshape(2, 3)
    assert np.allclose(packed / 65535, WEIGHTS.numpy(), atol=1e-4)
    assert data["keys"] == ["a", "b", "</script>"] and data["queries"] == ["q0", "q1"]


def test_map_is_the_same_in_every_run_and_differs_with_its_data():
    assert bundle() == bundle()
    identity = re.compile(r'id="(attention-map-\w+)"')
    ids = {identity.search(bundle(alt=alt)["text/html"]).group(1) for alt in ("One.", "Two.")}
    assert len(ids) == 2


def test_map_needs_nothing_from_elsewhere():
    html = re.sub(r"base64,[^\"]+", "", bundle()["text/html"])
    assert not re.search(r"https?:|@import|import\(|url\(|fetch|//\w", html)


def test_map_has_a_picture_and_words():
    shown = bundle()
    assert base64.b64decode(shown["image/png"]).startswith(b"\x89PNG")
    assert "q0 to a, q1 to &lt;/script&gt;" in shown["text/html"]
    even = AttentionMap(torch.full((1, 4), 0.25), ["q"], list("abcd"))
    assert "q to all alike" in repr(even)


@pytest.mark.parametrize(
    ("weights", "options", "message"),
    [
        (WEIGHTS.T, {}, "weights must be"),
        (WEIGHTS * 3, {}, "from before the softmax"),
        (WEIGHTS * torch.nan, {}, "must lie in"),
        (WEIGHTS, {"names": ["one", "two"]}, "weights must be"),
        (WEIGHTS, {"row": 2}, "row must be"),
    ],
)
def test_map_refuses_what_does_not_fit(weights, options, message):
    with pytest.raises(ValueError, match=message):
        AttentionMap(weights, ["q0", "q1"], ["a", "b", "c"], **options)


# --- tables ---------------------------------------------------------------------------------


def test_table_escapes_and_aligns():
    table = Table(["a", "long name"], [["<b>", 1], ["x", 22]])
    assert "&lt;b&gt;" in table._repr_html_() and "<b>" not in table._repr_html_()
    assert repr(table).splitlines() == ["a   | long name", "<b> | 1", "x   | 22"]
    with pytest.raises(ValueError, match="must have 2 cells"):
        Table(["a", "b"], [["only one"]])


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (1763.2, "1,800"),
        (33.1, "33"),
        (0.01234, "0.012"),
        (50_931, "51,000"),
        (-9.96, "-10.0"),
        (0, "0"),
    ],
)
def test_significant(number, text):
    assert significant(number) == text


# --- figures --------------------------------------------------------------------------------


def luminance(colour):
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("steps", [1, 2, 7])
def test_ramp_grows_darker_and_stays_visible(steps):
    values = [luminance(colour) for colour in ramp(steps)]
    assert values == sorted(values, reverse=True) and len(set(values)) == steps
    assert max(values) <= 0.30


def test_setup_makes_runs_repeatable():
    draws = []
    for _ in range(2):
        setup(seed=3)
        draws.append((torch.rand(1).item(), np.random.rand(), torch.get_num_threads()))
    assert draws[0] == draws[1] and draws[0][2] == 1
    assert plt.rcParams["figure.facecolor"] == "white"


def test_runs_are_drawn_as_mean_and_whole_range():
    _, axes = figure()
    line = plot_runs(axes, [1, 2], [[0.0, 1.0], [2.0, 5.0]], "blue")
    assert line.get_ydata().tolist() == [1.0, 3.0] and line.get_color() == COLOURS["blue"]
    (band,) = axes.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == (0.0, 5.0)
    with pytest.raises(ValueError, match=r"\(seeds, 2\)"):
        plot_runs(axes, [1, 2], [[1.0, 2.0, 3.0]])


def test_names_stand_on_their_line_also_on_a_logarithmic_axis():
    _, axes = figure()
    axes.set_xscale("log")
    line = plot_runs(axes, [1, 100], [[0.0, 1.0]])
    name_line(line, "half", at=10)
    assert axes.texts[0].xy == (10, pytest.approx(0.5))


def test_importing_needs_no_notebook():
    code = "import sys, transformer.book; sys.exit('IPython' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT).returncode == 0


# --- the chapters ---------------------------------------------------------------------------


def test_every_solution_passes_its_check():
    solutions = [
        (path.name, cell)
        for path in sorted((ROOT / "notebooks").glob("*.ipynb"))
        for cell in json.loads(path.read_text())["cells"]
        if "solution" in cell["metadata"].get("tags", [])
    ]
    assert solutions
    for name, cell in solutions:
        printed = "".join("".join(output.get("text", [])) for output in cell["outputs"])
        assert "✓" in printed and "○" not in printed, f"{name}, cell {cell['id']}: {printed!r}"
