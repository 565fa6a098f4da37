"""What the chapters need beside the model: one look for figures, source that is shown from the
file itself, maps to explore, tables, and exercises that say what is wrong.
"""

from transformer.book.exercises import check, check_function
from transformer.book.figures import figure, name_line, plot_runs, ramp, setup
from transformer.book.interactive import AttentionMap
from transformer.book.source import show_source
from transformer.book.tables import Table, comparison, significant
from transformer.book.widgets import (
    BeamExplorer,
    MaskBuilder,
    PositionExplorer,
    SoftmaxExplorer,
)
from transformer.training.progress import progress

__all__ = [
    "AttentionMap",
    "BeamExplorer",
    "MaskBuilder",
    "PositionExplorer",
    "SoftmaxExplorer",
    "Table",
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
