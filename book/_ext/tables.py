"""Sphinx extension: on a phone, each row of a wide table is a card that names its columns.

Whether a table is too wide for a phone is estimated from its longest words, and each of its cells
gets the name of its column. One that is too wide for a desktop is set smaller. page.css does both.
Names of code may break at their dots and underscores, and before their capitals.
"""

import html
import re

from sphinx.application import Sphinx

#: Room on a phone of 390 points and, with some reserve, on a desktop of 1,280.
PHONE, DESK = 350, 540
#: What a character and the edges of a column take of it.
CHARACTER, EDGES = 8.0, 23

#: The parts of a table in the markup that Sphinx writes.
TABLE = re.compile(r"<table\b([^>]*)>(.*?)</table>", re.DOTALL)
HEAD = re.compile(r"<thead\b.*?</thead>", re.DOTALL)
ROW = re.compile(r"<tr\b[^>]*>.*?</tr>", re.DOTALL)
CELL = re.compile(r"<t([dh])\b([^>]*)>(.*?)</t\1>", re.DOTALL)
_TAG = re.compile(r"<[^>]*>")
_CODE = re.compile(r"<code\b.*?</code>", re.DOTALL)
_TEXT = re.compile(r">[^<]+")
#: Where a name breaks: after a dot or an underscore, and before a capital.
_DOT = re.compile(r"(?<=[A-Za-z_)])\.(?=[A-Za-z_])")
_PART = re.compile(r"(?<=[A-Za-z\d])_(?=[A-Za-z\d])|(?<=[a-z])(?=[A-Z])")


def text_of(markup: str) -> str:
    """Return the text of some markup, without spaces around it."""
    return html.unescape(_TAG.sub("", markup)).strip()


def with_labels(body: str) -> str:
    """Return a page's markup with classes on wide tables, and labels on their cells."""

    def table(match: re.Match[str]) -> str:
        attributes, inside = match[1], with_breaks(match[2])
        rows = [CELL.findall(row) for row in ROW.findall(inside)]
        head = HEAD.search(inside)
        names = [text_of(cell[2]) for cell in CELL.findall(head[0])] if head else []
        width = _width(rows)
        if not head or not any(names) or width <= PHONE:
            return f"<table{attributes}>{inside}</table>"
        classes = "cards wide" if width > DESK else "cards"
        labelled = ROW.sub(lambda row: _labelled(row[0], names), inside[head.end() :])
        if 'class="' in attributes:
            attributes = attributes.replace('class="', f'class="{classes} ', 1)
        else:
            attributes += f' class="{classes}"'
        return f"<table{attributes}>{inside[: head.end()]}{labelled}</table>"

    return TABLE.sub(table, body)


def with_breaks(inside: str) -> str:
    """Return the markup of a table's inside with places where the names of code may break."""

    def parts(code: re.Match[str]) -> str:
        return _TEXT.sub(lambda text: _PART.sub(r"\g<0><wbr>", text[0]), code[0])

    def cell(match: re.Match[str]) -> str:
        if "math" in match[0]:  # no <wbr> inside a formula
            return match[0]
        dotted = _TEXT.sub(lambda text: _DOT.sub(".<wbr>", text[0]), match[0])
        return _CODE.sub(parts, dotted)

    return CELL.sub(cell, inside)


def _width(rows: list[list[tuple[str, str, str]]]) -> float:
    widths: dict[int, float] = {}
    for row in rows:
        for column, cell in enumerate(row):
            word = max(map(len, re.split(r"[\s\u200b-]+", text_of(cell[2]))))
            widths[column] = max(widths.get(column, 0), word)
    return CHARACTER * sum(widths.values()) + EDGES * len(widths)


def _labelled(row: str, names: list[str]) -> str:
    column = -1

    def cell(match: re.Match[str]) -> str:
        nonlocal column
        column += 1
        if "colspan" in match[2] or column >= len(names):
            return match[0]
        label = html.escape(names[column], quote=True)
        inside = match[3] if match[3].lstrip().startswith("<p") else f"<div>{match[3]}</div>"
        return f'<t{match[1]} data-label="{label}"{match[2]}>{inside}</t{match[1]}>'

    return CELL.sub(cell, row)


def _on_page(app: Sphinx, page: str, template: str, context: dict, doctree: object) -> None:
    if "body" in context:
        context["body"] = with_labels(context["body"])


def setup(app: Sphinx) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("html-page-context", _on_page)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
