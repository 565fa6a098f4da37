"""Tools that the chapters share: figures, source listings, widgets, tables, checks of exercises."""

from transformer.data.progress import progress
from transformer_book.drawing import Picture
from transformer_book.exercises import check, check_function
from transformer_book.figures import figure, name_line, plot_runs, ramp, setup
from transformer_book.interactive import AttentionMap
from transformer_book.pictures import picture
from transformer_book.source import show_source
from transformer_book.tables import Table, comparison, significant
from transformer_book.widgets import (
    CompassExplorer,
    DecoderPasses,
    FoldExplorer,
    MaskBuilder,
    NextTokenExplorer,
    PositionExplorer,
    SoftmaxExplorer,
    TensorWalk,
)

__all__ = [
    "AttentionMap", "CompassExplorer", "DecoderPasses", "FoldExplorer", "MaskBuilder",
    "NextTokenExplorer", "Picture", "PositionExplorer", "SoftmaxExplorer", "Table", "TensorWalk",
    "check", "check_function", "comparison", "figure", "name_line", "picture", "plot_runs",
    "progress", "ramp", "setup", "show_source", "significant",
]  # fmt: skip
