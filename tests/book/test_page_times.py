"""The line under a title: words count, code counts half, folded cells do not count."""

import json
from types import SimpleNamespace

import page_times
from docutils import nodes
from sphinx import addnodes


def page(*children):
    document = nodes.document(None, None)
    document += [nodes.title(text="Why so?"), *children]
    return document


def test_prose_counts_more_than_code_and_folded_cells_not_at_all():
    prose = nodes.paragraph(text="five words of plain text")
    code = nodes.container("", nodes.literal_block(text="x = f(1)\ny = 2"), classes=["cell"])
    folded = [
        nodes.container("", nodes.paragraph(text="not read"), classes=["cell", name])
        for name in ("tag_hide-cell", "tag_hide-input", "cell_output", "sd-dropdown")
    ]
    raw = nodes.raw(text="<b>never</b> mind this", format="html")
    assert page_times.words(page(prose)) == 7
    assert page_times.words(page(prose, code)) == 10
    assert page_times.words(page(prose, *folded, raw)) == 7


def test_the_line_follows_the_first_title_except_in_the_api_reference(tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "run_times.json").write_text(json.dumps({"06_masks": 20}))

    def body(name, doctree):
        context = {"body": "<h1>Why so?</h1>\n<h1>Other</h1>"}
        page_times.add_line(SimpleNamespace(srcdir=tmp_path), name, "", context, doctree)
        return context["body"]

    long = nodes.paragraph(text="word " * 590)
    line = '<h1>Why so?</h1>\n<p class="page-times">3 minutes to read{}.</p>\n<h1>Other</h1>'
    assert body("book/paper", page(long)) == line.format("")
    timed = body("notebooks/06_masks", page(long))
    assert timed == line.format(", about 20 seconds to run on one CPU core")
    for doctree in (None, page(), page(long.deepcopy(), addnodes.desc())):
        assert "page-times" not in body("book/api/model", doctree)
