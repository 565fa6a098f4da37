"""Interactive figures, each a piece of markup without a server or foreign scripts."""

from transformer.book.widgets.masks import MaskBuilder
from transformer.book.widgets.positions import PositionExplorer
from transformer.book.widgets.softmax import SoftmaxExplorer

__all__ = ["MaskBuilder", "PositionExplorer", "SoftmaxExplorer"]
