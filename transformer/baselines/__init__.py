"""What the paper compares with, behind the same methods as the Transformer."""

from transformer.baselines.convolutional import ConvolutionalConfig, ConvolutionalTranslator
from transformer.baselines.recurrent import RecurrentConfig, RecurrentTranslator

__all__ = [
    "ConvolutionalConfig",
    "ConvolutionalTranslator",
    "RecurrentConfig",
    "RecurrentTranslator",
]
