"""Every exercise of every chapter: open, wrong, nearly right and solved.

Only those cells of a chapter run that its exercises need.
"""

import ast
import contextlib
import io
import json
import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import torch
from chapter_names import code_cells, needed, reads_when_run
from generated.exercises import exercises_of

from transformer_book import check, check_function
from transformer_book.exercises import WrongAnswer

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
pytestmark = pytest.mark.usefixtures("unchecked")  # as in a notebook
every_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)

NO_ANSWERS = [
    "'no idea'",
    "0",
    "-1",
    "10**9",
    "True",
    "0.5",
    "[1, 2]",
    "[[1], [1, 2]]",
    "{}",
    "len",
]
NO_RESULTS = ["0", "True", "'no idea'", "{first}", "[1, 'a']", "[[1], [1, 2]]", "len"]


@pytest.fixture(autouse=True)
def as_it_was():
    """Restore what a chapter switches, such as gradients."""
    gradients, threads = torch.is_grad_enabled(), torch.get_num_threads()
    yield
    torch.set_grad_enabled(gradients)
    torch.set_num_threads(threads)


@every_chapter
def test_an_open_exercise_says_so_and_a_solution_is_right(path):
    cells = [cell for cell in code_cells(path) if cell.exercise]
    opened = [cell for cell in cells if cell.kind == "open"]
    assert len(opened) >= 3
    for cell in opened:
        assert "○" in cell.output and "✓" not in cell.output, cell.id
        solutions = [s for s in cells if s.kind == "solution" and s.exercise == cell.exercise]
        assert solutions, f"exercise {cell.exercise} has no solution"
        shown = "".join(solution.output for solution in solutions)
        assert "✓" in shown and "○" not in shown, f"solution of exercise {cell.exercise}"


@every_chapter
def test_a_number_or_a_prediction_can_be_answered_on_the_page(path):
    """The open cell stores the form, and the question names the choices."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    forms, text, number = {}, {}, 0
    for cell in cells:
        if cell["cell_type"] == "markdown":
            for number, question in re.findall(
                r"^\*\*(\d+)\. (.*)", "".join(cell["source"]), re.M | re.S
            ):
                text[int(number)] = question
        for output in cell.get("outputs", []):
            stored = output.get("metadata", {}).get("exercise", [])
            forms.setdefault(int(number), []).extend(stored)
    for exercise in exercises_of(path):
        if exercise.kind in ("a number", "a choice"):
            assert forms.get(exercise.number), f"exercise {exercise.number}: run the notebook again"
            for form in forms[exercise.number]:
                if form["kind"] == "word":
                    assert len(form["choices"]) > 1, f"exercise {exercise.number}"
                    missing = [c for c in form["choices"] if c not in text[exercise.number]]
                    assert not missing, f"exercise {exercise.number}: {missing}"


@every_chapter
def test_a_solution_is_folded_away(path):
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if "solution" in cell["metadata"].get("tags", []):
            assert "hide-cell" in cell["metadata"]["tags"], cell["id"]


def clashes(cells):
    """Names that come from an exercise and are read outside of it."""
    found = []
    for index, cell in enumerate(cells):
        for name in sorted(reads_when_run(cells, index)):
            binders = [other for other in cells[:index] if name in other.binds]
            if not binders or binders[-1].kind == "given":
                continue
            if binders[-1].exercise != cell.exercise:
                found.append(f"{cell.id} reads {name!r}, which {binders[-1].id} binds")
            elif cell.kind == "given" and binders[-1].kind == "solution":
                found.append(f"{cell.id} reads {name!r} of the solution {binders[-1].id}")
    return found


@every_chapter
def test_nothing_reads_what_an_exercise_binds(path):
    assert clashes(code_cells(path)) == []


def run(source, names):
    """Run a cell; return its printed output."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, "<cell>", "exec"), names)
    return printed.getvalue()


def foreseen(checker):
    """Make a check that also tries all foreseen mistakes; each must get its own hint."""

    def trying(answer, right, *arguments, **options):
        order = ("cases", "name") if checker is check_function else ("name",)
        given = dict(zip(order, arguments, strict=False))
        options = {"name": "f", **given, **options}
        if right is None:  # a check that has seen for itself that the exercise is open
            return checker(answer, right, **options)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            checker(right, right, **options)
        assert printed.getvalue().startswith("✓"), options["name"]
        for hint, wrong in (options.get("mistakes") or {}).items():
            with pytest.raises(WrongAnswer) as caught:
                checker(wrong, right, **options)
            assert hint in str(caught.value), f"{options['name']}: {hint!r} is never given"
        return checker(answer, right, **options)

    return trying


def wrong_versions(source):
    """Fill the reader's cell with wrong answers."""
    tree = ast.parse(source)
    for node in tree.body:
        if isinstance(node, ast.Assign) and "..." in ast.unparse(node.value):
            places = ast.unparse(node.value).count("...")
            for answer in NO_ANSWERS:
                yield _replaced(source, node, f"{ast.unparse(node.targets[0])} = "
                                f"{', '.join([answer] * places)}")  # fmt: skip
        elif isinstance(node, ast.FunctionDef) and "..." in ast.unparse(node.body[-1]):
            first = node.args.args[0].arg
            for result in NO_RESULTS:
                text = f"    return {result.format(first=first)}"
                yield _replaced(source, node.body[-1], text)


def _replaced(source, node, text):
    lines = source.splitlines()
    return "\n".join([*lines[: node.lineno - 1], text, *lines[node.end_lineno :]])


@every_chapter
def test_open_wrong_and_nearly_right_answers(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "__main__"}
    wrong = 0
    for cell in needed(code_cells(path)):
        if cell.kind != "open":
            torch.manual_seed(0)
            run(cell.source, names)
            continue
        names |= {"check": foreseen(check), "check_function": foreseen(check_function)}
        assert "○" in run(cell.source, names), cell.id
        names |= {"check": check, "check_function": check_function}
        for source in wrong_versions(cell.source):
            try:
                assert "✓" in run(source, dict(names)), f"{cell.id}:\n{source}"
            except WrongAnswer as error:  # it has to say more than that the answer is wrong
                sentences = re.split(r"(?<=[.?!]) (?=\S)", str(error))
                assert "expected" in str(error) or len(sentences) >= 2, f"{cell.id}: {error}"
                wrong += 1
    plt.close("all")
    assert wrong >= 10
