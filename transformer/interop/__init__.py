"""Weights from and to other libraries.

Paper: not in the paper: one architecture, several homes
"""

from transformer.interop.marian import from_marian
from transformer.interop.marian_export import to_marian
from transformer.interop.torch import from_torch, to_torch

__all__ = ["from_marian", "from_torch", "to_marian", "to_torch"]
