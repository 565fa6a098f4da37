"""The small extensions of the book: formulas, navigation, tables on a phone, light pages, folds."""

import json
import re
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import folded as scaffolding
import page_times
import pytest
from docutils import nodes
from docutils.utils import new_document
from filtered import PLACE, filtered
from formulas import mathml
from light import lightened, sheet, used_rules
from math_core import LatexError
from mended_markup import mend
from navigation import SearchWords, folded
from sphinx import addnodes
from tables import with_breaks, with_labels

from transformer_book.tables import Table


def test_a_formula_is_mathml():
    formula = ET.fromstring(mathml(r"\frac{QK^\top}{\sqrt{d_k}}", display=True))
    assert formula.get("display") == "block"
    assert formula.find(".//mfrac//msqrt/msub") is not None
    with pytest.raises(LatexError):
        mathml(r"\nosuchcommand")


def test_labels_of_figures_are_no_words_to_search_for():
    words = SearchWords({})
    kept = ["attent", "13a", "2017", "37000", "d_k", "0", ""]
    assert [word for word in kept if not words.word_filter(word)] == []
    left_out = ["050100150step", "004", "000piec", "128050100150200", "the"]
    assert not any(map(words.word_filter, left_out))


def test_parts_without_numbers_are_folded_unless_the_page_is_in_them():
    def part(name, entry, current=""):
        caption = f'<p class="caption"><span class="caption-text">{name}</span></p>'
        return f'{caption}<ul class="{current} nav"><li><a href="x">{entry}</a></li></ul>'

    chapters, reference = part("Attention", "1 Why?"), part("Reference", "Results")
    package = part("The package", "Model", "current")
    found = folded(f"<div>{chapters}{reference}{package}</div>")
    assert chapters in found
    details = '<details class="part"{}><summary><span class="caption-text">{}'
    assert details.format("", "Reference") in found
    assert details.format(" open", "The package") in found


def test_cells_of_a_wide_table_name_their_columns():
    def table(*names):
        head = "".join(f"<th>{name}</th>" for name in names)
        cells = "".join(f"<td>{name.upper()}</td>" for name in names)
        return f"<table><thead><tr>{head}</tr></thead><tbody><tr>{cells}</tr></tbody></table>"

    narrow = table("a", "b")
    assert with_labels(narrow) == narrow
    wide = with_labels(table(*(f"column{i}&amp;" for i in range(6))))
    assert wide.startswith('<table class="cards">')
    assert re.findall('<td data-label="(.*?)"', wide)[1] == "column1&amp;"
    assert "<th data-label" not in wide
    assert "><div>COLUMN1&AMP;</div></td>" in wide  # one thing beside the label


def test_names_in_tables_break_between_their_parts():
    code = "<td><p><code><span>num_heads</span></code> of torch.nn.Transformer, 0.5 e_x</p></td>"
    inside = with_breaks(f"<tr>{code}</tr>")
    assert "<span>num_<wbr>heads</span>" in inside
    assert "torch.<wbr>nn.<wbr>Transformer, 0.5 e_x" in inside
    named = '<td><a href="a.b#CausalMask_a"><code>CausalMask()</code></a></td>'
    assert with_breaks(named) == named.replace("CausalMask()", "Causal<wbr>Mask()")
    formula = '<td><span class="math">d_k a.b</span></td>'
    assert with_breaks(formula) == formula


def test_rules_of_icons_and_for_classes_that_no_page_has_are_removed():
    style = (
        "/* a{ */a{x:1}.used,.gone{x:2}.gone b{x:2}@media print{.gone{x:3}.used b{x:4}}"
        '.used:not(.gone){x:3}@font-face{font-family:"Font Awesome";src:url(x)}.fade{x:1}'
        ".fa-bars::before{x:5}"
    )
    kept = "a{x:1}.used,.gone{x:2}@media print{.used b{x:4}}.used:not(.gone){x:3}.fade{x:1}"
    assert used_rules(style, {"used", "fa-bars", "fade"}) == kept


def test_a_page_loads_one_sheet_and_its_scripts_late(tmp_path):
    (tmp_path / "styles").mkdir()
    own = '@import "../b.css";\na{b:url("../c.png")url(data:x)}'
    (tmp_path / "styles" / "a.css").write_text(own)
    (tmp_path / "b.css").write_text("e{f:url(g.woff2)}")
    link = '<link rel="stylesheet" href="../_static/styles/a.css?v=1" />\n'
    scripts = '<script src="a.js"></script><script async src="b.js"></script>'
    inline = "<script>DOCUMENTATION_OPTIONS.x = 1</script><script>let y</script>"
    page = f"<head>{link}{link}{scripts}{inline}</head>"
    found = lightened(page, tmp_path, lambda name: sheet(tmp_path, name))
    (written,) = tmp_path.glob("book-*.css")
    assert written.read_text() == 'e{f:url("g.woff2")}\na{b:url("c.png")url(data:x)}'
    late = scripts.replace("<script src", "<script defer src")
    needs = inline.replace("<script>DOC", '<script type="module">DOC')
    link = f'<link rel="stylesheet" href="../_static/{written.name}">\n'
    assert found == f"<head>{link}{late}{needs}</head>"


def test_rows_carry_what_they_are_chosen_by():
    def cells(tag, *texts):
        return "".join(f"<{tag}><p>{text}</p></{tag}>" for text in texts)

    head = cells("th", "Exercise", "Level", "You give")
    rows = [("2.1", "hard", "code"), ("11.3", "&lt; half", "")]
    body = "".join(f"<tr>{cells('td', *row)}</tr>\n" for row in rows)
    thead = f"<thead><tr>{head}</tr></thead>"
    table = f'<table class="cards table">{thead}<tbody>{body}</tbody></table>'
    made = filtered(PLACE + table, "book/exercises", {"2": "2 What is attention?"})
    assert re.findall("<tr (.*?)>", made) == [
        'data-chapter="2" data-level="hard" data-answer="code"',
        'data-chapter="11" data-level="&lt; half" data-answer=""',
    ]
    assert re.findall('<option value="(.*?)">(.*?)</option>', made) == [
        ("", "all"), ("2", "2 What is attention?"), ("11", "11"),
        ("", "all"), ("hard", "hard"), ("&lt; half", "&lt; half"),
        ("", "all"), ("code", "code"),
    ]  # fmt: skip
    assert '<table class="filtered cards table">' in made and PLACE not in made


def code_cell(source, **attributes):
    box = nodes.container("", nodes.literal_block(source, source), nb_element="cell_code_source")
    return nodes.container("", box, nb_element="cell_code", **attributes)


def test_hidden_inputs_are_folded_except_among_the_exercises():
    metadata = {"mystnb": {"code_prompt_show": "Show the imports"}}
    hidden = dict(hide_mode="input", cell_metadata=metadata)
    document = new_document("chapter")
    document += [
        code_cell("%pip install", classes=["tag_nbval-skip"]),
        code_cell("idea"),
        code_cell("re", **hidden),
    ]
    document += nodes.section("", code_cell("check", **hidden), ids=["exercises"])
    scaffolding._fold(None, document)
    (fold,) = document.findall(scaffolding.Fold)
    assert fold["label"] == "Imports" and fold.astext() == "re"
    assert [c.get("hide_mode") for c in document.children[:2]] == [None, None]
    assert "pip" not in document.astext() and "check" in document.astext()


def test_markup_is_mended_where_it_breaks_screen_readers_and_only_there():
    fields = '<dl class="field-list"><dt>Raises:</dt><dd>ValueError</dd></dl>'
    signature = (
        '<dt class="sig"><span class="sig-paren">(</span>\n\n<dl>\n<dd><em>x</em>,</dd>\n'
        f'<dd><em>mask</em>,</dd>\n</dl>\n\n<span class="sig-paren">)</span></dt>{fields}<dl></dl>'
    )
    mended = mend(signature)
    assert mended.count('<li class="sig-line">') == mended.count("</li>") == 2
    assert '<ul class="sig-lines">' in mended and mended.endswith(f"{fields}<dl></dl>")
    table = mend(Table(["a"], [["1"]])._repr_html_())
    assert 'tabindex="0"' in table and 'role="region"' in table
    assert mend('<div role="doc-biblioentry">x</div>') == '<div role="listitem">x</div>'
    assert mend(mended + table) == mended + table


def test_long_lines_wrap_with_a_hanging_indent_and_keep_their_text():
    line = "        return " + "x" * 40
    listing = f"<pre>short\n{line}\n\nend\n</pre>"
    page, start = mend(listing), '<span class="line" style="--i:8">'
    assert f"{start}{line}\n</span>" in page
    assert page.replace(start, "").replace("</span>", "") == listing


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
