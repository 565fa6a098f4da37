"""Sphinx extension: a long line of a listing wraps on a narrow screen, with a hanging indent."""

import html
import re

from sphinx.application import Sphinx

#: A line up to this length fits a phone of 390 points.
NARROW = 40
_PRE = re.compile(r"(?<=<pre>).*?(?=</pre>)", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")


def _wrapped(line: str) -> str:
    text = html.unescape(_TAG.sub("", line))
    if len(text) - text.endswith("\n") <= NARROW or "<div" in line or "</div" in line:
        return line
    indent = len(text) - len(text.lstrip(" "))
    style = f' style="--i:{indent}"' if indent else ""
    # A wrapped line brings its own line break.
    line = line.rstrip("\n")
    return f'<span class="line"{style}>{line}\n</span>'


def hanging(body: str) -> str:
    """Put each long line of the listings of a page into an element that can wrap."""
    return _PRE.sub(lambda pre: "".join(map(_wrapped, pre[0].splitlines(keepends=True))), body)


def _on_page(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    if "body" in context:
        context["body"] = hanging(context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("html-page-context", _on_page, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
