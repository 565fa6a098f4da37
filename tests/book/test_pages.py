"""The small extensions of the book: formulas, navigation, tables on a phone, light styles."""

import re
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import pytest
from formulas import mathml, parts
from light import used_rules
from math_core import LatexError
from navigation import folded, number_of
from tables import with_labels


def test_a_formula_is_mathml():
    formula = ET.fromstring(mathml(r"\frac{QK^\top}{\sqrt{d_k}}", display=True))
    assert formula.get("display") == "block"
    assert formula.find(".//mfrac//msqrt/msub") is not None
    with pytest.raises(LatexError):
        mathml(r"\nosuchcommand")


def test_a_display_breaks_between_its_formulas():
    assert parts(r"a = b, \qquad c = d") == ["a = b, ", "c = d"]
    aligned = r"\begin{aligned} a &= b \qquad c \end{aligned}"
    assert parts(aligned) == [aligned]


def test_the_number_of_a_page():
    env = SimpleNamespace(toc_secnumbers={"notebooks/20_x": {"": (20,)}, "book/x": {}})
    assert [number_of(env, page) for page in ("notebooks/20_x", "book/x", "y")] == ["20", "", ""]


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


def test_rules_for_classes_that_no_page_has_are_removed():
    style = (
        "a{x:1}.used,.gone{x:2}@media print{.gone{x:3}.used b{x:4}}"
        '.used:not(.gone){content:"}"}@font-face{font-family:"Font Awesome";src:url(x)}'
        ".fa-bars::before{x:5}"
    )
    kept = used_rules(style, {"used", "fa-bars"})
    assert "".join(kept.split()) == (
        'a{x:1}.used{x:2}@mediaprint{.usedb{x:4}}.used:not(.gone){content:"}"}'
    )
