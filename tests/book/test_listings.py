"""Long lines of listings wrap."""

from listings import hanging


def test_long_lines_wrap_with_a_hanging_indent_and_keep_their_text():
    line = "        return " + "x" * 40
    page = hanging(f"<pre>short\n{line}\n\nend\n</pre>")
    assert f'<span class="line" style="--i:8">{line}\n</span>' in page
    assert page.replace('<span class="line" style="--i:8">', "").replace("</span>", "") == (
        f"<pre>short\n{line}\n\nend\n</pre>"
    )
