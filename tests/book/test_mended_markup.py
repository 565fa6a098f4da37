"""Arguments are items of a list, tables can be reached by keyboard, references are list items."""

from mended_markup import mend

from transformer_book.tables import Table


def test_only_the_list_of_arguments_changes():
    fields = '<dl class="field-list"><dt>Raises:</dt><dd>ValueError</dd></dl>'
    page = (
        '<dt class="sig"><span class="sig-paren">(</span>\n\n<dl>\n<dd><em>x</em>,</dd>\n'
        f'<dd><em>mask</em>,</dd>\n</dl>\n\n<span class="sig-paren">)</span></dt>{fields}<dl></dl>'
    )
    mended = mend(page)
    assert mended.count('<li class="sig-line">') == mended.count("</li>") == 2
    assert '<ul class="sig-lines">' in mended and mended.endswith(f"{fields}<dl></dl>")
    assert mend(mended) == mended


def test_a_table_of_a_chapter_can_be_scrolled_by_keyboard():
    mended = mend(Table(["a"], [["1"]])._repr_html_())
    assert 'tabindex="0"' in mended and 'role="region"' in mended and mend(mended) == mended


def test_references_are_list_items():
    page = '<div role="list"><div class="citation" role="doc-biblioentry">x</div></div>'
    assert mend(page) == page.replace("doc-biblioentry", "listitem")
