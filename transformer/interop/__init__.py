"""Convert weights from and to other libraries."""

from transformer.interop.ctranslate2 import CTranslate2Translator, to_ctranslate2
from transformer.interop.graphs import to_graphs
from transformer.interop.marian import from_marian
from transformer.interop.marian_export import to_marian
from transformer.interop.torch import from_torch, to_torch

__all__ = [
    "CTranslate2Translator",
    "from_marian",
    "from_torch",
    "to_ctranslate2",
    "to_graphs",
    "to_marian",
    "to_torch",
]
