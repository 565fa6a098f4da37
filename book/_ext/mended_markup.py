"""Sphinx extension: mend markup of Sphinx and of the notebooks for screen readers and phones.

- Sphinx writes each argument of a long signature as the description of a missing term.
- A table that scrolls sideways cannot be reached by keyboard.
- Entries of a bibliography have a deprecated role, inside a list that needs items.
- A long line of a listing does not wrap; here it does, with a hanging indent.
"""

import html
import re

from sphinx.application import Sphinx

_ARGUMENTS = re.compile(r'(<span class="sig-paren">\(</span>\s*)<dl>(.*?)</dl>', re.DOTALL)
_SCROLLS = '<div class="themed" style="overflow-x:auto">'
_REACHABLE = _SCROLLS[:-1] + ' tabindex="0" role="region" aria-label="Table">'

#: A line up to this length fits a phone of 390 points.
NARROW = 40
_PRE = re.compile(r"(?<=<pre>).*?(?=</pre>)", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")


def mend(body: str) -> str:
    """Return a page's markup without these faults; mending twice changes nothing more."""

    def lines(match: re.Match[str]) -> str:
        rows = match.group(2).replace("<dd>", '<li class="sig-line">').replace("</dd>", "</li>")
        return f'{match.group(1)}<ul class="sig-lines">{rows}</ul>'

    body = _ARGUMENTS.sub(lines, body)
    body = body.replace(_SCROLLS, _REACHABLE)
    body = _PRE.sub(lambda pre: "".join(map(_hanging, pre[0].splitlines(keepends=True))), body)
    return body.replace('role="doc-biblioentry"', 'role="listitem"')


def _hanging(line: str) -> str:
    """Put a long line into an element that can wrap, and that brings its own line break."""
    text = html.unescape(_TAG.sub("", line)).rstrip("\n")
    if len(text) <= NARROW or "<div" in line or "</div" in line or 'class="line"' in line:
        return line
    indent = len(text) - len(text.lstrip(" "))
    style = f' style="--i:{indent}"' if indent else ""
    line = line.rstrip("\n")
    return f'<span class="line"{style}>{line}\n</span>'


def _on_page(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    if "body" in context:
        context["body"] = mend(context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("html-page-context", _on_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
