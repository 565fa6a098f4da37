"""Interactive figures, each a piece of markup without a server or foreign scripts."""

from transformer_book.widgets.compass import CompassExplorer
from transformer_book.widgets.fields import FieldExplorer
from transformer_book.widgets.folding import FoldExplorer
from transformer_book.widgets.masks import MaskBuilder, ReachExplorer
from transformer_book.widgets.memory import MemoryExplorer
from transformer_book.widgets.next_token import NextTokenExplorer
from transformer_book.widgets.overlap import OverlapExplorer
from transformer_book.widgets.passes import DecoderPasses
from transformer_book.widgets.positions import PositionExplorer
from transformer_book.widgets.softmax import SoftmaxExplorer
from transformer_book.widgets.text import BatchPacker, MergeStepper
from transformer_book.widgets.training import ScheduleExplorer, TargetExplorer
from transformer_book.widgets.walk import TensorWalk

__all__ = [
    "BatchPacker", "CompassExplorer", "DecoderPasses", "FieldExplorer", "FoldExplorer",
    "MaskBuilder", "MemoryExplorer", "MergeStepper", "NextTokenExplorer", "OverlapExplorer",
    "PositionExplorer", "ReachExplorer", "ScheduleExplorer", "SoftmaxExplorer", "TargetExplorer",
    "TensorWalk",
]  # fmt: skip
