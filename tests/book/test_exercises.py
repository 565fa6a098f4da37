"""Every exercise of every chapter: open, wrong, nearly right and solved; and it harms nothing else.

Of a chapter only those cells are run that its exercises need.
"""

import ast
import contextlib
import io
import json
import re
import traceback
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
import torch
from chapter_names import Cell, code_cells, needed, reads_when_run

from transformer.book import check, check_function
from transformer.book.exercises import WrongAnswer

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = sorted((ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
every_chapter = pytest.mark.parametrize("path", CHAPTERS, ids=lambda path: path.stem)

# Their checks need trained models or long counts. What they print is compared by nbval anyway.
LONG = {"05-80", "05-81", "06-56", "06-61", "06-62", "12-72", "12-73", "12-76", "12-77"}
LONG |= {"19-56", "19-57", "20-74", "20-75"}

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
NO_FUNCTIONS = [
    "return 0",
    "return -1.5",
    "return True",
    "return 'no idea'",
    "return {first}",
    "return [1, 'a']",
    "return [[1], [1, 2]]",
    "return {{}}",
    "return len",
    "return __import__('torch').zeros(3)",
    "return {first}.sum()",
    "raise ZeroDivisionError('mine')",
]


@pytest.fixture(autouse=True)
def as_it_was():
    """What a chapter switches for itself, such as gradients, holds in that chapter only."""
    gradients, threads = torch.is_grad_enabled(), torch.get_num_threads()
    yield
    torch.set_grad_enabled(gradients)
    torch.set_num_threads(threads)


# --- as they are stored ---------------------------------------------------------------------


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
def test_a_solution_is_folded_away(path):
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if "solution" in cell["metadata"].get("tags", []):
            assert "hide-cell" in cell["metadata"]["tags"], cell["id"]


# --- skipped, or done in another way ---------------------------------------------------------


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
    """So it does no harm to skip one, to do it in another way, or to run its solution."""
    assert clashes(code_cells(path)) == []


@pytest.mark.parametrize(
    "source",
    [
        "print(x)",
        "def f():\n    return x\n\n\nf()",
        "f = lambda: x",
        "use()",
        "later = [x for _ in range(3)]",
        "for i in range(3):\n    print(i + x)",
        "x += 1",
        "class A:\n    size = x",
        "@x\ndef f():\n    pass",
    ],
)
def test_a_clash_is_seen(source):
    given = Cell("a", "x = 1\n\n\ndef use():\n    return x", 0, "given")
    solution = Cell("b", "x = 2", 1, "solution")
    later = Cell("c", source, 2, "given")
    assert len(clashes([given, solution, later])) == 1
    assert clashes([given, later]) == []
    assert clashes([given, solution, Cell("d", "x = 3", 2, "given"), later]) == []


@pytest.mark.parametrize(
    "source",
    [
        "x = 3\nprint(x)",
        "def f(x):\n    return x",
        "def f():\n    x = 1\n    return x",
        "print([x for x in range(3)])",
        "import x",
        "a.x = 1",
        "f(x=1)",
        "lambda x: x",
        "for x in range(3):\n    print(x)",
    ],
)
def test_a_name_of_its_own_is_no_clash(source):
    solution = Cell("b", "x = 2", 1, "solution")
    assert clashes([solution, Cell("c", source, 2, "given")]) == []


# --- run ------------------------------------------------------------------------------------


def run(source, names):
    """What a cell prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, "<cell>", "exec"), names)
    return printed.getvalue()


def foreseen(checker):
    """A check that also tries all the mistakes it foresees: each must get its own hint."""

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
    """The reader's cell with answers that nobody would give."""
    tree = ast.parse(source)
    for node in tree.body:
        if isinstance(node, ast.Assign) and "..." in ast.unparse(node.value):
            places = ast.unparse(node.value).count("...")
            for answer in NO_ANSWERS:
                yield _replaced(source, node, f"{ast.unparse(node.targets[0])} = "
                                f"{', '.join([answer] * places)}")  # fmt: skip
        elif isinstance(node, ast.FunctionDef) and "..." in ast.unparse(node.body[-1]):
            first = node.args.args[0].arg
            for body in NO_FUNCTIONS:
                yield _replaced(source, node.body[-1], "    " + body.format(first=first))


def _replaced(source, node, text):
    lines = source.splitlines()
    return "\n".join([*lines[: node.lineno - 1], text, *lines[node.end_lineno :]])


def is_helpful(message):
    """It says more than that the answer is wrong: what is expected, or where to look."""
    return "expected" in message or len(re.split(r"(?<=[.?!]) (?=\S)", message)) >= 2


@every_chapter
def test_open_wrong_and_nearly_right_answers(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = code_cells(path)
    names = {"__name__": "__main__"}
    wrong = 0
    for cell in needed(cells, without=LONG):
        if cell.kind != "open":
            torch.manual_seed(0)
            run(cell.source, names)
            continue
        names |= {"check": foreseen(check), "check_function": foreseen(check_function)}
        assert "○" in run(cell.source, names), cell.id
        names |= {"check": check, "check_function": check_function}
        for source in wrong_versions(cell.source):
            said = attempt(source, dict(names))
            assert "✓" in said or is_helpful(said), f"{cell.id}: {said}\n{source}"
            wrong += "✓" not in said
    plt.close("all")
    assert wrong >= 20


def attempt(source, names):
    try:
        return run(source, names)
    except WrongAnswer as message:
        return str(message)
    except Exception as error:
        # The reader's own error, from the reader's own line: Python says it best.
        frames = traceback.extract_tb(error.__traceback__)
        answers = {n.name for n in ast.parse(source).body if isinstance(n, ast.FunctionDef)}
        if answers & {frame.name for frame in frames}:
            return f"It raised, as it was expected to: {error}"
        raise
