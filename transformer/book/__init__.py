"""Tools that the chapters share: figures, source listings, widgets, tables, checks of exercises."""

from transformer.book.drawing import Picture
from transformer.book.exercises import check, check_function
from transformer.book.figures import figure, name_line, plot_runs, ramp, setup
from transformer.book.interactive import AttentionMap
from transformer.book.source import show_source
from transformer.book.tables import Table, comparison, significant
from transformer.book.widgets import (
    CompassExplorer,
    DecoderPasses,
    FoldExplorer,
    MaskBuilder,
    NextTokenExplorer,
    PositionExplorer,
    SoftmaxExplorer,
    TensorWalk,
)
from transformer.data.progress import progress

__all__ = [
    "AttentionMap",
    "CompassExplorer",
    "DecoderPasses",
    "FoldExplorer",
    "MaskBuilder",
    "NextTokenExplorer",
    "Picture",
    "PositionExplorer",
    "SoftmaxExplorer",
    "Table",
    "TensorWalk",
    "check",
    "check_function",
    "comparison",
    "figure",
    "name_line",
    "plot_runs",
    "progress",
    "ramp",
    "setup",
    "show_source",
    "significant",
]
