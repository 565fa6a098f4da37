"""Markup is mended for screen readers, and long lines of listings wrap."""

from mended_markup import mend

from transformer_book.tables import Table


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
