"""The line under a title: words count, code counts half, folded cells do not count."""

import json
from types import SimpleNamespace

import page_times
from docutils import nodes
from sphinx import addnodes


def test_prose_counts_more_than_code_and_folded_cells_not_at_all():
    code = nodes.container("", nodes.literal_block(text="x = f(1)\ny = 2"), classes=["cell"])
    unread = [
        nodes.container("", nodes.paragraph(text="not read"), classes=["cell", name])
        for name in ("tag_hide-cell", "cell_output", "sd-dropdown")
    ]
    prose, raw = nodes.paragraph(text="five words of plain text"), nodes.raw(text="<b>x</b> y")
    assert page_times.words(nodes.section("", prose, code, *unread, raw)) == 8


def test_the_line_follows_the_first_title_except_in_the_api_reference(tmp_path):
    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "run_times.json").write_text(json.dumps({"06_masks": 20}))

    def body(name, *children):
        context = {"body": "<h1>Why so?</h1>\n<h1>Other</h1>"}
        document = nodes.section("", *children)
        page_times.add_line(SimpleNamespace(srcdir=tmp_path), name, "", context, document)
        return context["body"]

    long = nodes.paragraph(text="word " * 590)
    line = '<h1>Why so?</h1>\n<p class="page-times">3 minutes to read{}.</p>\n<h1>Other</h1>'
    assert body("book/paper", long) == line.format("")
    timed = ", about 20 seconds to run on one CPU core"
    assert body("notebooks/06_masks", long.deepcopy()) == line.format(timed)
    assert "page-times" not in body("book/api/model", long.deepcopy(), addnodes.desc())
