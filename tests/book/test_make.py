"""The scripts of book/make: the check of built pages, and the execution of notebooks."""

import json

import pytest
import typer

from book.make.check import faults
from book.make.notebooks import NOTEBOOKS, RUN_TIMES, execute, execute_one

GOOD = """
<h1 id="top">Start</h1> <p>Costs $5, see <a href="two.html#deep">two</a>, <a href="#top">up</a>,
<a href="https://example.org/page.html">elsewhere</a>.</p>
<p><code>{func}`x`</code></p> <pre>$$ :::</pre> <span class="math">$$x$$</span>
<img src="picture.png" alt="A grid."> <br> <script src="own.js"></script>
"""


@pytest.fixture
def book(tmp_path):
    """Writes a sound book of two pages; `extra` goes onto the first."""

    def write(extra=""):
        (tmp_path / "index.html").write_text(GOOD + extra)
        (tmp_path / "two.html").write_text('<h1 id="deep">Two</h1>')
        (tmp_path / "picture.png").write_bytes(b"")
        (tmp_path / "own.js").write_text("")
        return tmp_path

    return write


def test_a_sound_book_has_no_faults(book):
    assert faults(book()) == []


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ('<a href="gone.html">x</a>', "missing file: gone.html"),
        ('<a href="#gone">x</a>', "missing anchor: #gone"),
        ('<a href="two.html#gone">x</a>', "missing anchor: two.html#gone"),
        ('<script src="https://cdn.example.org/x.js"></script>', "another site"),
        ('<link rel="stylesheet" href="https://example.org/x.css">', "another site"),
        ('<img src="http://example.org/x.png" alt="A line.">', "another site"),
        ('<img src="picture.png">', "no alt text"),
        ('<img src="picture.png" alt="../_images/picture.png">', "no alt text"),
        ("<p>see {func}`x`</p>", "role was not rendered"),
        (
            f'<div class="cell_input"><div class="highlight-python"><pre>{"x" * 77}</pre></div>',
            "code of 77 columns",
        ),
        ("<p>\n:::{note}\n</p>", "fence was not rendered"),
        ("<p>see [x](02_attention.ipynb)</p>", "link was not rendered"),
        ("<p>$$ x^2 $$</p>", "formula was not rendered"),
    ],
)
def test_each_fault_is_found(book, fault, message):
    (found,) = faults(book(fault))
    assert found.startswith("index.html: ") and message in found


def test_a_book_that_was_not_built_is_a_fault(tmp_path):
    assert len(faults(tmp_path)) == 1


# --- notebooks ------------------------------------------------------------------------------


def write(path, *sources, **metadata):
    """A notebook of code cells with the ids a-0, a-1, ..."""
    cells = [
        dict(cell_type="code", id=f"a-{i}", source=source, outputs=[], execution_count=None)
        | dict(metadata=metadata.get(f"a{i}", {}))
        for i, source in enumerate(sources)
    ]
    kernel = {"display_name": "Mine", "language": "python", "name": "python3"}
    kept = {"accelerator": "GPU", "colab": {"gpuType": "T4"}}
    notebook = dict(cells=cells, metadata={"widgets": {}, "kernelspec": kernel} | kept)
    path.write_text(json.dumps(notebook | dict(nbformat=4, nbformat_minor=5)))
    return path


def test_executing_twice_changes_no_byte(tmp_path):
    path = write(
        tmp_path / "a.ipynb",
        "raise SystemExit",
        "x = 2\nx",
        "for i in range(3):\n    print(i, flush=True)",
        a0=dict(tags=["nbval-skip"]),
        a1=dict(tags=["hide-input"], execution={"started": "now"}),
        a2=dict(mystnb={"image": {"alt": "?"}}),
    )
    assert execute_one(path)
    first = path.read_bytes()
    assert not execute_one(path) and path.read_bytes() == first
    notebook = json.loads(first)
    skipped, value, printed = notebook["cells"]
    assert notebook["metadata"]["language_info"] == {"name": "python"}
    assert "widgets" not in notebook["metadata"]
    assert notebook["metadata"]["accelerator"] == "GPU"
    assert notebook["metadata"]["colab"] == {"gpuType": "T4"}
    assert skipped["execution_count"] is None and skipped["outputs"] == []
    assert value["metadata"] == {"tags": ["hide-input"]} and value["execution_count"] == 1
    assert printed["metadata"] == {"mystnb": {"image": {"alt": "?"}}}
    assert [output["text"] for output in printed["outputs"]] == [["0\n", "1\n", "2\n"]]


def test_a_notebook_that_fails_stays_as_it_was_and_stops_no_other(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")  # execute() changes it
    wrong = write(tmp_path / "a.ipynb", "1 / 0")
    dead = write(tmp_path / "b.ipynb", "import os\nos._exit(1)")
    good = write(tmp_path / "c.ipynb", "print(1)")
    before, times = wrong.read_bytes(), RUN_TIMES.read_bytes()
    with pytest.raises(typer.Exit) as stop:
        execute([wrong, dead, good])
    said = capsys.readouterr()
    assert stop.value.exit_code == 1 and "ZeroDivisionError" in said.err
    assert "b.ipynb: Kernel died" in said.err and "c.ipynb: updated" in said.out
    assert wrong.read_bytes() == before and {*tmp_path.iterdir()} == {wrong, dead, good}
    assert RUN_TIMES.read_bytes() == times


def test_every_chapter_has_a_run_time():
    assert json.loads(RUN_TIMES.read_text()).keys() == {p.stem for p in NOTEBOOKS.glob("*.ipynb")}
