"""Where a link may lead: the headings of chapters and pages, as the built book names them.

The reference pages point at hundreds of headings. A heading that is reworded must fail a test, and
not wait for the reader who follows the link.
"""

import json
import re
from pathlib import Path

_DEEPEST = 3  # myst_heading_anchors of _config.yml


def slug(heading: str) -> str:
    """Make the anchor that a heading gets from MyST.

    Args:
        heading: its text. Formulas, and the signs of Markdown's code and emphasis, are not part of
            the anchor.
    """
    text = re.sub(r"\$[^$]*\$|[`*]", "", heading.strip()).lower().replace(" ", "-")
    return re.sub(r"[^\w\u4e00-\u9fff\-]", "", text)


def headings(page: Path) -> list[str]:
    """Read the headings of a chapter or a page, without those too deep for a link.

    Args:
        page: a notebook, or a file in Markdown.

    Returns:
        Their texts in order, the title first.

    Raises:
        FileNotFoundError: if there is no such file.
    """
    return [
        line.lstrip("#").strip()
        for line in _markdown(page)
        if re.match(rf"#{{1,{_DEEPEST}}} ", line)
    ]


def anchors(page: Path) -> set[str]:
    """Collect what may stand behind the ``#`` of a link to a chapter or a page.

    Args:
        page: a notebook, or a file in Markdown.

    Returns:
        The anchors of its headings, and the targets that are written above a paragraph, such as
        ``(run)=``.

    Raises:
        FileNotFoundError: if there is no such file.
    """
    targets = {found[1] for line in _markdown(page) if (found := re.fullmatch(r"\((.+)\)=", line))}
    return {slug(heading) for heading in headings(page)} | targets


def _markdown(page: Path) -> list[str]:
    """The lines of a page that are no code."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        sources = ["".join(c["source"]) for c in cells if c["cell_type"] == "markdown"]
        text = "\n\n".join(sources)
    lines, fence = [], ""
    for line in text.splitlines():
        mark = re.match(r"\s*(`{3,}|~{3,})", line)
        if not fence and mark:
            fence = mark[1]
        elif fence and line.strip() == fence:
            fence = ""
        elif not fence:
            lines.append(line)
    return lines
