"""Figures to play with: each is one piece of markup that needs no server and no foreign script."""

from transformer.book.widgets.beam import BeamExplorer
from transformer.book.widgets.masks import MaskBuilder
from transformer.book.widgets.positions import PositionExplorer
from transformer.book.widgets.softmax import SoftmaxExplorer

__all__ = ["BeamExplorer", "MaskBuilder", "PositionExplorer", "SoftmaxExplorer"]
