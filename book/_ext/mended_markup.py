"""Sphinx extension: what Sphinx and the notebooks write that a screen reader stumbles over, mended.

- Sphinx sets each argument of a long signature as the description of a term that is not there.
- A table that scrolls sideways cannot be reached by keyboard.
- Entries of a bibliography have a role that is no longer one, inside a list that wants items.
"""

import re

from sphinx.application import Sphinx

_ARGUMENTS = re.compile(r'(<span class="sig-paren">\(</span>\s*)<dl>(.*?)</dl>', re.DOTALL)
_SCROLLS = '<div class="themed" style="overflow-x:auto">'
_REACHABLE = _SCROLLS[:-1] + ' tabindex="0" role="region" aria-label="Table">'


def mend(body: str) -> str:
    """Return a page's markup without these faults; mending twice changes nothing more."""

    def lines(match: re.Match[str]) -> str:
        rows = match.group(2).replace("<dd>", '<li class="sig-line">').replace("</dd>", "</li>")
        return f'{match.group(1)}<ul class="sig-lines">{rows}</ul>'

    body = _ARGUMENTS.sub(lines, body)
    body = body.replace(_SCROLLS, _REACHABLE)
    return body.replace('role="doc-biblioentry"', 'role="listitem"')


def _on_page(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    if "body" in context:
        context["body"] = mend(context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("html-page-context", _on_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
