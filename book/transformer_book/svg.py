"""Figures of matplotlib as SVG: text is text, and each colour follows the theme of the page."""

import base64
import hashlib
import io
import itertools
import re
import textwrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text
from matplotlib.ticker import FixedLocator
from PIL import Image

from transformer_book.palette import VARIABLES, dark_pixels, on_dark

NARROW = 5.2  # inches: on a phone, letters are then as large as on a wide page
TALLEST_PANEL = 2.9  # inches, of panels one below the other
SMALLEST = 10.0  # points, of letters on a phone, which shows a point as 0.95 pixels
LONGEST_NAME = 22  # letters of a name beside an axis; the others go to the next line
LINE = 0.17  # inches, of such names one below the other
MOST_POINTS = 1500  # of one artist; a denser one is stored as pixels
PIXELS_PER_INCH = 200  # of such an artist
FONTS = '"DejaVu Sans", Verdana, system-ui, sans-serif'  # those that are about equally wide

_COLOUR = re.compile(r"\b(fill|stroke): (#[0-9a-f]{6})")
_IMAGE = re.compile(r'<image xlink:href="data:image/png;base64,([^"]+)"([^>]*)/>')
_NUMBER = re.compile(r"-?\d+\.\d{3,}")
_PLACES = re.compile(r'\b(?:d|x|y|width|height|transform|points)="[^"]*"|font: [^;"]*')


def to_svg(figure: Figure) -> str:
    """Draw a figure as an ``<svg>`` that a page can hold: ids are its own, crowds are pixels."""
    for artist in figure.findobj():
        points: Any = ()
        if isinstance(artist, PathCollection):
            points = artist.get_offsets()
        elif isinstance(artist, Line2D):
            points = artist.get_xydata()
        if len(points) > MOST_POINTS:
            artist.set_rasterized(True)
    target = io.StringIO()
    nothing: dict[str, Any] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    figure.savefig(target, format="svg", bbox_inches="tight", dpi=PIXELS_PER_INCH, metadata=nothing)
    svg = target.getvalue()
    svg = svg[svg.index("<svg ") :].replace("\n", " ")
    svg = re.sub(r"<metadata>.*?</metadata>|<style [^>]*>.*?</style>|<!--.*?-->", "", svg)
    svg = re.sub(r" {2,}", " ", svg).replace("> <", "><").strip()
    svg = _PLACES.sub(lambda found: _NUMBER.sub(_short, found[0]), svg)
    return themed(_own_ids(_IMAGE.sub(_both_themes, svg)))


def for_notebook(figure: Figure) -> tuple[str, dict[str, str]]:
    """Draw a figure and, unless texts would meet, its variant for phones, which changes it."""
    before = crowding(figure)
    wide = to_svg(figure)
    make_narrow(figure)
    for smallest in (SMALLEST, 0.0):  # small letters stay small where larger ones would meet
        sizes = [(text, text.get_fontsize()) for text in figure.findobj(Text)]
        for text, size in sizes:
            text.set_fontsize(max(size, smallest))
        if crowding(figure) <= before:
            return wide, {"narrow": to_svg(figure)}
        for text, size in sizes:
            text.set_fontsize(size)
    return wide, {}


def make_narrow(figure: Figure) -> None:
    """Make a figure ``NARROW`` inches wide: panels one below the other, long names in lines."""
    width, height = figure.get_size_inches()
    needed = [_fold_names(axes) for axes in figure.axes]
    specs = [axes.get_subplotspec() for axes in figure.axes]
    grids = {spec.get_gridspec() for spec in specs if spec is not None}
    columns = max((grid.ncols for grid in grids), default=1)
    if columns == 1 or len(grids) > 1 or None in specs:
        figure.set_size_inches(NARROW, max(height, sum(needed) + 1))
    else:
        rows = len(figure.axes)
        below = figure.add_gridspec(rows, 1)
        # Panels in a row may share the label of an axis; each needs its own now.
        for place, axes in enumerate(figure.axes):
            axes.tick_params(labelleft=True, labelbottom=True)
            first = figure.axes[place - place % columns]
            last = figure.axes[min(len(specs) - columns + place % columns, rows - 1)]
            axes.set_ylabel(axes.get_ylabel() or first.get_ylabel())
            axes.set_xlabel(axes.get_xlabel() or last.get_xlabel())
            axes.set_subplotspec(below[place])
        panel = min(height / -(-rows // columns), TALLEST_PANEL)
        figure.set_size_inches(NARROW, max(panel, max(needed) + 0.8) * rows)
    _fold_titles(figure)


def _fold_names(axes: Axes) -> float:
    """Break the long names beside an axis into lines; return the inches that all names need."""
    if not isinstance(axes.yaxis.get_major_locator(), FixedLocator):
        return 0.0
    names = [label.get_text() for label in axes.get_yticklabels()]
    folded = [_folded(name, LONGEST_NAME) for name in names]
    if not any(names):
        return 0.0
    if folded != names:
        axes.set_yticks(axes.get_yticks(), folded)
    places = axes.get_yaxis_transform().transform([(0, place) for place in axes.get_yticks()])[:, 1]
    gap = np.diff(np.sort(places)).min(initial=axes.bbox.height) / axes.bbox.height
    lines = max((name.count("\n") + 1 for name in folded), default=1)
    return float(LINE * lines / gap)


def _fold_titles(figure: Figure) -> None:
    """Break titles and the labels of horizontal axes that leave the figure."""
    figure.draw_without_rendering()
    for axes in figure.axes:
        title: Text = axes._left_title  # type: ignore[attr-defined]
        for text in (title, axes.xaxis.label):
            box, words = text.get_window_extent(), text.get_text()
            if box.x1 > figure.bbox.x1 or box.x0 < 0:
                letters = int(axes.bbox.width / box.width * len(words))
                text.set_text(_folded(words, max(letters, 1)))


def _folded(text: str, letters: int) -> str:
    """Break a text into lines between its words."""
    return textwrap.fill(text, letters, break_long_words=False, break_on_hyphens=False)


def crowding(figure: Figure) -> int:
    """Count the pairs of texts that meet, and the texts that leave the figure."""
    figure.draw_without_rendering()
    unseen = set()  # labels of ticks beyond the ends of an axis
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        low, high = sorted(axis.get_view_interval())
        ticks = zip(axis.get_ticklocs(), axis.get_ticklabels(), strict=False)
        unseen |= {label for place, label in ticks if not low <= place <= high}
    boxes = []
    for text in set(figure.findobj(Text)) - unseen:
        if text.get_visible() and text.get_text().strip():
            box = text.get_window_extent()
            if box.width > 0 and box.height > 0:
                boxes.append(box)
    pairs = sum(
        min(one.x1, other.x1) - max(one.x0, other.x0) > 1
        and min(one.y1, other.y1) - max(one.y0, other.y0) > 1
        for one, other in itertools.combinations(boxes, 2)
    )
    edge = figure.bbox.width * 0.03
    outside = sum(box.x1 > figure.bbox.x1 + edge or box.x0 < -edge for box in boxes)
    return int(pairs + outside)


def themed(svg: str) -> str:
    """Replace the colours of an SVG by variables, and say what they are on a dark page."""
    svg = svg.replace("'DejaVu Sans'", FONTS.replace('"', "'"))
    others = {"#000000", *(colour for _, colour in _COLOUR.findall(svg))} - VARIABLES.keys()
    rules = "".join(f"--c{colour[1:]}:{on_dark(colour)};" for colour in sorted(others))
    style = f"@media screen{{html[data-theme=dark]{{{rules}}}}}"
    if "on-dark" in svg:
        style += ".on-dark{display:none}"
    svg = _COLOUR.sub(lambda found: f"{found[1]}: {variable(found[2])}", svg)
    head, rest = svg.split(">", 1)
    black = f'style="fill: {variable("#000000")}"'  # which matplotlib leaves out
    return f"{head} {black}><style>{style}</style>{rest}"


def variable(colour: str) -> str:
    """Return the CSS value of a colour "#rrggbb": a variable and, for other viewers, itself."""
    return f"var(--{VARIABLES.get(colour, f'c{colour[1:]}')}, {colour})"


def _short(number: re.Match[str]) -> str:
    """Write a number with two decimals; a hundredth of a point is invisible."""
    return f"{round(float(number[0]), 2) + 0.0:g}"  # + 0.0: no minus before a zero


def _own_ids(svg: str) -> str:
    """Drop ids that nothing refers to; make the others unique to this figure."""
    used = set(re.findall(r'(?:url\(#|xlink:href="#)([^)"]+)', svg))
    digest = hashlib.sha256(svg.encode()).hexdigest()[:8]
    names = {name: f"f{digest}-{number}" for number, name in enumerate(sorted(used))}
    svg = re.sub(r' id="([^"]+)"', lambda m: f' id="{names[m[1]]}"' if m[1] in names else "", svg)
    return re.sub(r'(url\(#|xlink:href="#)([^)"]+)', lambda m: m[1] + names[m[2]], svg)


def _both_themes(found: re.Match[str]) -> str:
    """Store pixels twice: as they are drawn, and in the colours of a dark page."""
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(found[1]))).convert("RGBA"))
    element = ""
    for theme, shown in (("light", pixels), ("dark", dark_pixels(pixels))):
        target = io.BytesIO()
        Image.fromarray(shown).save(target, format="png", optimize=True)
        data = base64.b64encode(target.getvalue()).decode()
        element += f'<image class="on-{theme}" href="data:image/png;base64,{data}"{found[2]}/>'
    return element
