"""Multi-line signatures as lists of lines that a screen reader can read.

Sphinx sets each argument as the description of a term that is not there, which is no valid list.
"""

import re

from sphinx.application import Sphinx

_LIST = re.compile(r'(<span class="sig-paren">\(</span>\s*)<dl>(.*?)</dl>', re.DOTALL)


def mend(body: str) -> str:
    """Replace the broken lists of a page."""

    def lines(match: re.Match[str]) -> str:
        rows = match.group(2).replace("<dd>", '<li class="sig-line">').replace("</dd>", "</li>")
        return f'{match.group(1)}<ul class="sig-lines">{rows}</ul>'

    return _LIST.sub(lines, body)


def _on_page(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    if "body" in context:
        context["body"] = mend(context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("html-page-context", _on_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
