"""Pictures of a mechanism, drawn from data: boxes, vectors, matrices, arrows.

A picture is an SVG in the palette's colours, as light or dark as the page, and its text is text.
Lengths are pixels, y grows downwards. What a method draws it returns as an :class:`Area`, so that
the next part can be placed beside it. A picture that is too wide for a phone is drawn a second time
for it::

    def draw(picture: Drawing) -> None:
        query = picture.strip(60, 20, q, "query", label="q")
        keys = [picture.strip(60, 70 + 30 * i, k, "key") for i, k in enumerate(K)]
        for key in keys:
            picture.arrow(query.bottom, key.top)

    Picture("A query meets its keys.", draw, (640, 200), narrow=(360, 200))
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb

from transformer_book.palette import COLOURS, ROLES, VARIABLES
from transformer_book.svg import FONTS, themed

Number = int | float
Point = tuple[Number, Number]
NAMED = COLOURS | ROLES | {name: colour for colour, name in VARIABLES.items()}
SIZE = 14  # of text
SHADES = 12  # of a strip or a grid


@dataclass(frozen=True)
class Area:
    """A rectangle of a picture."""

    x: Number
    y: Number
    width: Number
    height: Number

    @property
    def left(self) -> Point:
        """Middle of the left edge."""
        return self.x, self.y + self.height / 2

    @property
    def right(self) -> Point:
        """Middle of the right edge."""
        return self.x + self.width, self.y + self.height / 2

    @property
    def top(self) -> Point:
        """Middle of the upper edge."""
        return self.x + self.width / 2, self.y

    @property
    def bottom(self) -> Point:
        """Middle of the lower edge."""
        return self.x + self.width / 2, self.y + self.height


class Drawing:
    """A canvas; each method adds one part."""

    def __init__(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self.parts: list[str] = []

    @property
    def narrow(self) -> bool:
        """Whether this is the variant for phones."""
        return self.width <= 420

    def svg(self) -> str:
        """Return the picture as an ``<svg>`` element."""
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}"'
            f' viewBox="0 0 {self.width} {self.height}" font-family="{escape(FONTS)}">'
        )
        return themed(f"{head}{''.join(self.parts)}</svg>")

    def text(
        self,
        at: Point,
        text: str,
        colour: str = "ink",  # a name in NAMED, or "#rrggbb"
        size: Number = SIZE,
        anchor: str = "middle",
        bold: bool = False,
    ) -> None:
        """Write a line of text around ``at``; the index of a letter, as in ``d_k``, is lowered."""
        look = f'font-size="{size:g}" text-anchor="{anchor}" style="{_paint("fill", colour)}"'
        if bold:
            look += ' font-weight="700"'
        place = f'x="{_n(at[0])}" y="{_n(at[1])}" dy=".35em"'
        self.parts.append(f"<text {place} {look}>{_lowered(text)}</text>")

    def box(
        self,
        x: Number,
        y: Number,
        width: Number,
        height: Number,
        text: str = "",
        fill: str = "pale",
        colour: str = "ink",
        edge: str = "",
        corner: Number = 6,
        bold: bool = False,
    ) -> Area:
        """Draw a box with rounded corners and text in its middle, one line or several."""
        stroke = f"; {_paint('stroke', edge)}" if edge else ""
        self.parts.append(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'
            f' rx="{corner:g}" style="{_paint("fill", fill)}{stroke}"/>'
        )
        lines = text.split("\n")
        for number, line in enumerate(lines):
            middle = y + height / 2 + (number - (len(lines) - 1) / 2) * SIZE * 1.25
            self.text((x + width / 2, middle), line, colour, bold=bold)
        return Area(x, y, width, height)

    def tokens(
        self,
        words: Sequence[str],
        x: Number,
        y: Number,
        step: Number,
        lit: Mapping[int, str] | None = None,  # colours by place
        size: tuple[Number, Number] = (0.85, 26),  # width as a share of the step, and height
    ) -> list[Area]:
        """Draw a row of words, each in a box."""
        lit = lit or {}
        return [
            self.box(
                x + step * i, y, size[0] * step, size[1], word,
                lit.get(i, "pale"), "ground" if i in lit else "ink", bold=i in lit,
            )
            for i, word in enumerate(words)
        ]  # fmt: skip

    def strip(
        self,
        x: Number,
        y: Number,
        values: Sequence[Number] | np.ndarray,
        colour: str = "key",
        cell: tuple[Number, Number] = (6, 16),
        label: str = "",
        largest: Number | None = None,  # has the full colour
    ) -> Area:
        """Draw a vector as a strip of cells, the darker the larger; negative numbers are grey."""
        return self.grid(x, y, [values], colour, cell, [label] if label else (), largest=largest)

    def grid(
        self,
        x: Number,
        y: Number,
        values: Sequence[Any] | np.ndarray,  # NaN leaves a cell empty
        colour: str = "key",
        cell: tuple[Number, Number] = (44, 26),
        rows: Sequence[str] = (),
        columns: Sequence[str] = (),
        digits: int | None = None,  # of the numbers in the cells
        largest: Number | None = None,
    ) -> Area:
        """Draw a matrix as a grid of cells; arguments as for :meth:`strip`."""
        matrix = np.asarray(values, dtype=float)
        width, height = cell
        whole = Area(x, y, width * matrix.shape[1], height * matrix.shape[0])
        scale = largest or float(np.nanmax(np.abs(matrix))) or 1.0
        cells: dict[tuple[str, int], str] = {}  # one path per shade, which keeps the picture small
        numbers = []
        for (i, j), value in np.ndenumerate(matrix):
            if np.isnan(value):
                continue
            left, top = x + width * j, y + height * i
            share = min(abs(value) / scale, 1.0)
            shade = colour if value >= 0 else "grey", round(share * SHADES)
            line = f"M{_n(left + width / 2)} {_n(top + 0.5)}v{_n(height - 1)}"
            cells[shade] = cells.get(shade, "") + line
            if digits is not None:
                text = f"{value:z.{digits}f}"
                ink = _legible(colour if value >= 0 else "grey", share)
                numbers.append(((left + width / 2, top + height / 2), text, ink, SIZE - 1))
        for (paint, level), path in cells.items():
            look = f'style="{_paint("stroke", paint)}" stroke-opacity="{level / SHADES:.2f}"'
            self.parts.append(f'<path d="{path}" stroke-width="{_n(width)}" {look}/>')
        for number in numbers:
            self.text(*number)
        self.parts.append(
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(whole.width)}" height="{_n(whole.height)}"'
            f' style="fill: none; {_paint("stroke", colour)}"/>'
        )
        for i, name in enumerate(rows):
            self.text((x - 8, y + height * (i + 0.5)), name, anchor="end")
        for j, name in enumerate(columns):
            self.text((x + width * (j + 0.5), y - 11), name)
        return whole

    def arrow(
        self, *points: Point, colour: str = "rule", width: Number = 1.5, tip: bool = True
    ) -> None:
        """Draw a line through two points or more, with a tip at the last."""
        (x0, y0), (x1, y1) = points[-2:]
        length = float(np.hypot(x1 - x0, y1 - y0)) or 1.0
        dx, dy, back = (x1 - x0) / length, (y1 - y0) / length, 5 + 2 * width
        end = (x1 - dx * back * 0.7, y1 - dy * back * 0.7) if tip else (x1, y1)
        path = " ".join(f"{_n(x)},{_n(y)}" for x, y in [*points[:-1], end])
        look = f'style="fill: none; {_paint("stroke", colour)}" stroke-width="{width:g}"'
        self.parts.append(f'<polyline points="{path}" {look}/>')
        if tip:
            side = back * 0.45
            corners = ((x1, y1), (x1 - dx * back - dy * side, y1 - dy * back + dx * side),
                       (x1 - dx * back + dy * side, y1 - dy * back - dx * side))  # fmt: skip
            path = " ".join(f"{_n(x)},{_n(y)}" for x, y in corners)
            self.parts.append(f'<polygon points="{path}" style="{_paint("fill", colour)}"/>')


class Shown:
    """A picture as a notebook and the book's page show it; the description is its text."""

    def __init__(self, description: str, wide: str, narrow: str = "") -> None:
        self.description, self.wide, self.narrow = description, wide, narrow

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> tuple[Any, Any]:
        metadata = {"image/svg+xml": {"narrow": self.narrow}} if self.narrow else {}
        return {"image/svg+xml": self.wide, "text/plain": repr(self)}, metadata

    def __repr__(self) -> str:
        return self.description


class Picture(Shown):
    """A picture that ``draw`` makes, for phones a second time on a canvas that is ``narrow``."""

    def __init__(
        self,
        description: str,
        draw: Callable[[Drawing], None],
        size: tuple[int, int],  # 688 pixels are as wide as the page
        narrow: tuple[int, int] | None = None,
    ) -> None:
        if narrow and narrow[0] > 420:
            raise ValueError(f"narrow must be at most 420 pixels wide, got {narrow[0]}")
        self.drawn = [Drawing(*each) for each in (size, narrow) if each]
        for drawing in self.drawn:
            draw(drawing)
        super().__init__(description, *(drawing.svg() for drawing in self.drawn))


def _n(number: Number) -> str:
    return f"{number:.2f}".rstrip("0").rstrip(".")


def _paint(kind: str, colour: str) -> str:
    """Return ``fill: ...`` or ``stroke: ...`` of a named colour, a role by its own name."""
    if colour in ROLES:
        return f"{kind}: var(--{colour}, {ROLES[colour]})"
    return f"{kind}: {NAMED.get(colour, colour)}"


def _legible(colour: str, share: Number) -> str:
    """Return the colour of a number on a cell with this share of a colour."""
    mixed = 1 - share * (1 - np.array(to_rgb(NAMED.get(colour, colour))))
    return "ground" if mixed**2.2 @ (0.21, 0.72, 0.07) < 0.23 else "ink"


def _lowered(text: str) -> str:
    """Escape a text, give numbers a true minus sign, and lower the index of a letter, as in d_k."""
    text = escape(re.sub(r"(?<!\w)-(?=[\d.])", "\u2212", text))
    lowered = r'\1<tspan dy=".3em" font-size="75%">\2</tspan><tspan dy="-.22em">&#8203;</tspan>'
    return re.sub(r"\b([A-Za-z])_([A-Za-z0-9]+)", lowered, text)
