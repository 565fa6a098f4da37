"""Charts of the reference pages: one row per number, as a dot with its range."""

from collections.abc import Sequence
from dataclasses import dataclass

import matplotlib as mpl
from drawn_figures import markup
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

from transformer_book.figures import STYLE, WIDTH
from transformer_book.palette import COLOURS
from transformer_book.svg import for_notebook


@dataclass(frozen=True)
class Row:
    """One number of a chart."""

    name: str
    value: float
    low: float | None = None  #: of its range or interval; None if it has none
    high: float | None = None
    colour: str = "blue"  #: a name of the palette
    hollow: bool = False


def chart(
    parts: dict[str, Sequence[Row]],
    axis: str,
    alt: str,
    reference: float | None = None,
    log: bool = False,
) -> str:
    """Draw rows of dots on a common axis, as a block of Markdown for a page."""
    # A figure of its own, without pyplot: the build draws several pages at once.
    with mpl.rc_context({**STYLE, "axes.grid.axis": "x"}):
        count = sum(len(rows) + 1 for rows in parts.values())
        figure = Figure(figsize=(WIDTH, 0.24 * count + 0.7), layout="constrained")
        axes = figure.subplots()
        labels: list[str] = []
        for heading, rows in parts.items():
            labels.append(heading)
            for row in rows:
                colour = COLOURS[row.colour]
                ends = None
                if row.low is not None and row.high is not None:
                    ends = [[row.value - row.low], [row.high - row.value]]
                face = "white" if row.hollow else colour
                at = [len(labels)]
                axes.errorbar([row.value], at, xerr=ends, fmt="o", color=colour, mfc=face)
                number = f"{row.value:.2f}".replace("-", "−")  # a true minus sign
                beside = axes.get_yaxis_transform()
                axes.text(1.01, at[0], number, size="small", va="center", transform=beside)
                labels.append(row.name)
        axes.set_yticks(range(count), labels, size="small")
        for label in axes.get_yticklabels():
            if label.get_text() in parts:
                label.set_fontweight("bold")
        axes.set_ylim(count - 0.4, -0.6)
        axes.tick_params(axis="y", length=0)
        axes.set_xlabel(axis)
        if log:
            axes.set_xscale("log", base=2)
            axes.xaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:g}"))
            axes.xaxis.set_minor_locator(NullLocator())
            axes.xaxis.set_minor_formatter(NullFormatter())
        if reference is not None:
            axes.axvline(reference, color=COLOURS["grey"], linewidth=1.5)
        svg, metadata = for_notebook(figure)
    return f"```{{raw}} html\n{markup(svg, metadata.get('narrow', ''), alt)}\n```\n"
