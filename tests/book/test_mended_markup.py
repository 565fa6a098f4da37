"""Arguments stand in a list that is one, tables can be reached, entries are items of their list."""

import importlib.util
from pathlib import Path

from transformer.book.tables import Table

PATH = Path(__file__).parents[2] / "book" / "_ext" / "mended_markup.py"
SPEC = importlib.util.spec_from_file_location("mended_markup", PATH)
mended_markup = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(mended_markup)
mend = mended_markup.mend

FIELDS = '<dl class="field-list"><dt>Raises:</dt><dd>ValueError</dd></dl>'


def test_only_the_list_of_arguments_changes():
    page = (
        '<dt class="sig"><span class="sig-paren">(</span>\n\n<dl>\n<dd><em>x</em>,</dd>\n'
        f'<dd><em>mask</em>,</dd>\n</dl>\n\n<span class="sig-paren">)</span></dt>{FIELDS}<dl></dl>'
    )
    mended = mend(page)
    assert mended.count('<li class="sig-line">') == mended.count("</li>") == 2
    assert '<ul class="sig-lines">' in mended and mended.endswith(f"{FIELDS}<dl></dl>")
    assert mend(mended) == mended


def test_a_table_of_a_chapter_can_be_scrolled_by_keyboard():
    page = Table(["a"], [["1"]])._repr_html_()
    mended = mend(page)
    assert 'tabindex="0"' in mended and 'role="region"' in mended and mend(mended) == mended


def test_entries_of_a_bibliography_are_items():
    page = '<div role="list"><div class="citation" role="doc-biblioentry">x</div></div>'
    assert mend(page) == page.replace("doc-biblioentry", "listitem")
