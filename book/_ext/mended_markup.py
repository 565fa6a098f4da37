"""Sphinx extension: mend markup of Sphinx and of the notebooks that breaks screen readers.

- Sphinx writes each argument of a long signature as the description of a missing term.
- A table that scrolls sideways cannot be reached by keyboard.
- Entries of a bibliography have a deprecated role, inside a list that needs items.
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
