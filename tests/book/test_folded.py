"""What a chapter's code shows and what it folds, statement by statement."""

import folded
from docutils import nodes
from docutils.utils import new_document
from folded import parts_of, read_later

CELL = """
import math
setup(seed=0)

scores = q @ k.T  # the idea
expected = torch.tensor(1.0)
for row in scores:
    assert row.sum() > 0
torch.testing.assert_close(scores.max(), expected)

# what the table says
rows = [[name, f"{value:.2f}"] for name, value in found.items()]
assert len(rows) == 3
Table(["name", "value"], rows)
"""


def kinds(source, **options):
    return [(part.kind, part.label) for part in parts_of(source.strip(), **options)]


def test_a_cell_is_divided_by_what_its_statements_do():
    assert kinds(CELL) == [
        ("imports", "Imports"),
        ("", ""),
        ("checks", "2 statements checked"),
        ("table", "How the table is made"),
        ("checks", "1 statement checked"),
        ("table", "How the table is made"),
    ]


def test_no_line_is_lost_and_comments_stay_with_their_statement():
    parts = parts_of(CELL.strip())
    lines = "\n".join(part.code for part in parts).split("\n")
    assert [line for line in lines if line] == [line for line in CELL.split("\n") if line]
    assert parts[3].code.startswith("# what the table says\nrows")


def test_a_value_that_only_checks_read_is_folded_with_them():
    shown, checks = parts_of(CELL.strip(), later={"scores"})[1:3]
    assert "expected" not in shown.code and "expected = " in checks.code
    shown, checks = parts_of(CELL.strip(), later={"scores", "expected"})[1:3]
    assert "expected = " in shown.code


def test_names_that_later_cells_read_other_than_in_checks():
    assert read_later(["a = 1", "print(a)\nassert b", "%pip install x"]) == [
        {"print", "a"},
        set(),
        set(),
    ]
    assert read_later(["n = 1\nassert n == 1", "n += 1"])[0] == {"n"}


def test_two_statements_on_a_line_stay_on_it():
    assert [part.code for part in parts_of("x = 1; y = 2\nz = 3")] == ["x = 1; y = 2\nz = 3"]


def test_a_figure_is_folded_from_its_canvas_on_and_a_loop_with_work_is_not_folded():
    figure = "means = runs.mean()\nfig, axes = figure()\naxes.plot(means)\nplt.show()"
    assert kinds(figure, figure=True) == [("", ""), ("figure", "How the figure is drawn")]
    assert kinds("for x in xs:\n    y = f(x)\n    assert y > 0") == [("", "")]


def test_what_is_not_plain_python_stays_as_it_is():
    assert [part.code for part in parts_of("%pip install x\nassert True")] == [
        "%pip install x\nassert True"
    ]


def test_imports_of_two_cells_are_behind_one_line():
    document = new_document("chapter")
    for source in ("import math", "import re\nsetup()", "print(1)", "import os"):
        block = nodes.literal_block(source, source)
        box = nodes.container("", block, nb_element="cell_code_source")
        document += nodes.container("", box, nb_element="cell_code", cell_metadata={})
    folded._fold(None, document)
    cells = [[fold.astext() for fold in cell.findall(nodes.literal_block)] for cell in document]
    assert cells == [["import math", "import re\nsetup()"], ["print(1)"], ["import os"]]
    assert len([*document.findall(folded.Fold)]) == 2
