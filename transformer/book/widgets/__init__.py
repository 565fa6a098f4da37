"""Interactive figures, each a piece of markup without a server or foreign scripts."""

from transformer.book.widgets.compass import CompassExplorer
from transformer.book.widgets.fields import FieldExplorer
from transformer.book.widgets.folding import FoldExplorer
from transformer.book.widgets.masks import MaskBuilder, ReachExplorer
from transformer.book.widgets.memory import MemoryExplorer
from transformer.book.widgets.next_token import NextTokenExplorer
from transformer.book.widgets.overlap import OverlapExplorer
from transformer.book.widgets.passes import DecoderPasses
from transformer.book.widgets.positions import PositionExplorer
from transformer.book.widgets.softmax import SoftmaxExplorer
from transformer.book.widgets.text import BatchPacker, MergeStepper
from transformer.book.widgets.training import ScheduleExplorer, TargetExplorer
from transformer.book.widgets.walk import TensorWalk

__all__ = [
    "BatchPacker",
    "CompassExplorer",
    "DecoderPasses",
    "FieldExplorer",
    "FoldExplorer",
    "MaskBuilder",
    "MemoryExplorer",
    "MergeStepper",
    "NextTokenExplorer",
    "OverlapExplorer",
    "PositionExplorer",
    "ReachExplorer",
    "ScheduleExplorer",
    "SoftmaxExplorer",
    "TargetExplorer",
    "TensorWalk",
]
