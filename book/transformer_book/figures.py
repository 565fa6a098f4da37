"""The style of all figures, on white in the colours of the palette; the start of notebooks."""

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.rcsetup import cycler

from transformer_book.palette import COLOURS, GRID, INK, RULE, TICK
from transformer_book.skipped_cells import explain_unknown_names, running_shell
from transformer_book.svg import for_notebook

WIDTH = 6.4  # inches; a phone shows it at about half the size, hence the large type

_FILE = Path(__file__).with_name("book.mplstyle")
_COLOURS = {
    "axes.edgecolor": RULE, "axes.labelcolor": INK, "grid.color": GRID, "text.color": INK,
    "xtick.color": TICK, "ytick.color": TICK,
    "axes.prop_cycle": cycler(color=list(COLOURS.values())),
}  # fmt: skip
# Any keys: the type of matplotlib for their names differs between its versions.
STYLE: dict[Any, Any] = {**mpl.rc_params_from_file(_FILE, use_default_template=False), **_COLOURS}


def setup(seed: int = 0) -> None:
    """Start a notebook: the style of the book, fixed seeds, one thread, a hint at skipped cells."""
    _show_as_svg()
    mpl.rcParams.update(STYLE)
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    explain_unknown_names()


def _show_as_svg() -> None:
    """Let a notebook show figures as SVG in the colours of the page."""
    shell = running_shell()
    if shell is None or "inline" not in mpl.get_backend():
        return
    shell.enable_matplotlib("inline")  # now, because it chooses a format of its own
    formatters = shell.display_formatter.formatters
    formatters["image/png"].pop(Figure, None)
    formatters["image/svg+xml"].for_type(Figure, for_notebook)


def figure(
    rows: int = 1,
    columns: int = 1,
    height: int | float = 3.6,
    width: int | float = WIDTH,
    **options: Any,
) -> tuple[Figure, Axes | np.ndarray]:
    """Make a figure in the book's size, in inches; options are those of ``pyplot.subplots``."""
    return plt.subplots(rows, columns, figsize=(width, height), layout="constrained", **options)


def ramp(steps: int) -> list[str]:
    """Make colours for the steps of a growing quantity, bright to dark, all legible on white."""
    colours = mpl.colormaps["plasma"](np.linspace(0.62, 0.0, steps))
    return [mpl.colors.to_hex(colour) for colour in colours]


def plot_runs(
    axes: Axes,
    x: Sequence[int | float] | np.ndarray,
    runs: Sequence[Sequence[int | float]] | np.ndarray,  # one row per seed
    colour: str | None = None,
    label: str | None = None,
    **options: Any,
) -> Line2D:
    """Draw the mean of several runs as a line, and their whole range as a band."""
    runs = np.asarray(runs, dtype=float)
    if runs.ndim != 2 or runs.shape[1] != len(x):
        raise ValueError(f"runs must have the shape (seeds, {len(x)}), got {runs.shape}")
    if colour is not None:
        colour = COLOURS.get(colour, colour)
    (line,) = axes.plot(x, runs.mean(axis=0), color=colour, label=label, **options)
    axes.fill_between(
        x, runs.min(axis=0), runs.max(axis=0), color=line.get_color(), alpha=0.2, linewidth=0
    )
    return line


def name_line(
    line: Line2D, text: str, at: int | float, dx: int | float = 0, dy: int | float = 6
) -> None:
    """Write the name of a line above its point ``at``, in its colour; shifts are in points."""
    axes = line.axes
    assert isinstance(axes, Axes)  # None for a line that was never drawn
    x, y = (np.asarray(values, dtype=float) for values in line.get_data())
    # Interpolate on the scale of the axis, which may be logarithmic.
    forward: Callable[[np.ndarray], np.ndarray] = axes.xaxis.get_transform().transform
    height = np.interp(forward(np.array([at])), forward(x), y)[0]
    axes.annotate(
        text,
        (at, height),
        xytext=(dx, dy),
        textcoords="offset points",
        color=line.get_color(),
        fontweight="bold",
        ha="center",
        va="bottom",
    )
