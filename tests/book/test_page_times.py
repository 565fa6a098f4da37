"""The line under a title: words count, code counts half, what is folded away does not count."""

import importlib.util
import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from docutils import nodes
from sphinx import addnodes

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "book" / "_ext" / "page_times.py"
SPEC = importlib.util.spec_from_file_location("page_times", SOURCE)
page_times = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(page_times)


def page(*children):
    document = nodes.document(None, None)
    document += [nodes.title(text="Why so?"), *children]
    return document


def folded(name):
    return nodes.container("", nodes.paragraph(text="not read at all"), classes=["cell", name])


def test_words_are_those_that_are_read():
    prose = nodes.paragraph(text="five words of plain text")
    code = nodes.container("", nodes.literal_block(text="x = f(1)\ny = 2"), classes=["cell"])
    unread = [folded(name) for name in ("tag_hide-cell", "tag_hide-input", "cell_output")]
    raw = nodes.raw(text="<b>never</b> mind this", format="html")
    assert page_times.words(page(prose)) == 7
    assert page_times.words(page(prose, code)) == 10
    assert page_times.words(page(prose, *unread, raw)) == 7


@pytest.mark.parametrize(
    "words, seconds, said",
    [
        (10, None, ""),
        (210, None, "A minute to read"),
        (2510, 30, "13 minutes to read, about half a minute to run on one CPU core"),
        (500, 45, "2 minutes to read, about 45 seconds to run on one CPU core"),
        (900, 90, "4 minutes to read, about a minute and a half to run on one CPU core"),
        (900, 600, "4 minutes to read, about 10 minutes to run on one CPU core"),
    ],
)
def test_what_is_said(words, seconds, said):
    assert page_times.line(words, seconds) == said


@pytest.fixture
def add(tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "run_times.json").write_text(json.dumps({"05_masks": 20}))

    def make(name, doctree):
        context = {"body": "<h1>Why so?<a>#</a></h1>\n<h1>Other</h1>"}
        app = SimpleNamespace(srcdir=tmp_path)
        page_times.add_line(app, name, "page.html", context, doctree)
        return context["body"]

    return make


def test_the_line_stands_under_the_first_title(add):
    long = page(nodes.paragraph(text="word " * 590))
    behind = '<h1>Why so?<a>#</a></h1>\n<p class="page-times">{}.</p>\n<h1>Other</h1>'
    assert add("book/claims", long) == behind.format("3 minutes to read")
    runs = "3 minutes to read, about 20 seconds to run on one CPU core"
    assert add("notebooks/05_masks", long) == behind.format(runs)


def test_pages_that_are_not_read_from_end_to_end_have_none(add):
    bare = add("search", None)
    assert "page-times" not in bare
    reference = page(nodes.paragraph(text="word " * 900), addnodes.desc())
    assert add("book/api/model", reference) == add("book/short", page()) == bare


def test_the_book_loads_it():
    sphinx = yaml.safe_load((ROOT / "_config.yml").read_text())["sphinx"]
    assert ROOT / sphinx["local_extensions"]["page_times"] == SOURCE.parent
    assert "page_times" in sphinx["config"]["extensions"]
