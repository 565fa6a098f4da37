"""Masks: which position may attend to which. True = may attend, everywhere in this package.

Masks depend on token ids alone, never on train or eval mode.
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def padding_mask(ids: Int[Tensor, "B S"], pad_id: int = 0) -> Bool[Tensor, "B 1 1 S"]:
    """Hide padding: every query of a sentence may attend to its real tokens only.

    The two middle axes broadcast over heads and queries. A row that is all padding may attend to
    all of it, so that no query is left without anything to attend to.
    """
    real = ids != pad_id
    return (real | ~real.any(dim=1, keepdim=True))[:, None, None, :]


def require_mask(mask: Tensor | None) -> None:
    """Raise TypeError unless a mask is boolean; PyTorch's kernel adds other masks to the scores."""
    if mask is not None and mask.dtype != torch.bool:
        raise TypeError(f"mask must be of type bool (True = may attend), got {mask.dtype}")


def causal_mask(length: int, device: torch.device | str | None = None) -> Bool[Tensor, "T T"]:
    """Hide the future: position i may attend to positions 0..i, itself included.

    Paper: section 3.2.3
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()
