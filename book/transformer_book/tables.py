"""Tables of numbers that a page has computed."""

import math
from collections.abc import Iterable, Sequence
from html import escape


class Table:
    """A small table that a notebook shows as HTML, and a terminal as aligned text."""

    def __init__(self, header: Sequence[str], rows: Sequence[Sequence[object]]):
        self.header = [str(cell) for cell in header]
        self.rows = [[str(cell) for cell in row] for row in rows]
        for row in self.rows:
            if len(row) != len(self.header):
                raise ValueError(
                    f"rows must have {len(self.header)} cells as the header has, got {row}"
                )

    def _repr_html_(self) -> str:
        return html_table(map(escape, self.header), (map(escape, row) for row in self.rows))

    def markdown(self) -> str:
        """Write the table in Markdown."""
        lines = [self.header, ["---"] * len(self.header), *self.rows]
        cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
        return "".join(f"| {' | '.join(line)} |\n" for line in cells)

    def __repr__(self) -> str:
        lines = [self.header, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        )


def significant(number: int | float, digits: int = 2) -> str:
    """Write a number with a few significant digits: 1763.2 becomes "1,800"."""
    if number == 0:
        return "0"
    places = digits - 1 - math.floor(math.log10(abs(number)))
    return f"{round(number, places):,.{max(places, 0)}f}"


def comparison(rows: Sequence[tuple[str, str, str]]) -> Table:
    """Make the table that ends a chapter: the paper, the measurement, the difference."""
    return Table(["What the paper says", "What we measured", "Where they differ"], rows)


def html_table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Write a table as HTML; the cells may hold markup."""
    style = 'style="text-align:left"'
    head = "".join(f"<th {style}>{name}</th>" for name in header)
    body = "".join(
        f"<tr>{''.join(f'<td {style}>{cell}</td>' for cell in row)}</tr>" for row in rows
    )
    # The class keeps the colours of the page in dark mode, see book/_static/custom.css.
    return (
        '<div class="themed" style="overflow-x:auto"><table class="table">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )
