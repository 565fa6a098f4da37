"""Interactive figures, each a piece of markup without a server or foreign scripts."""

from transformer.book.widgets.compass import CompassExplorer
from transformer.book.widgets.folding import FoldExplorer
from transformer.book.widgets.masks import MaskBuilder
from transformer.book.widgets.next_token import NextTokenExplorer
from transformer.book.widgets.passes import DecoderPasses
from transformer.book.widgets.positions import PositionExplorer
from transformer.book.widgets.softmax import SoftmaxExplorer
from transformer.book.widgets.walk import TensorWalk

__all__ = [
    "CompassExplorer",
    "DecoderPasses",
    "FoldExplorer",
    "MaskBuilder",
    "NextTokenExplorer",
    "PositionExplorer",
    "SoftmaxExplorer",
    "TensorWalk",
]
