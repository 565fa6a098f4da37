"""Masks: which position may attend to which. True = may attend, everywhere in this package.

Masks are made from token ids alone, never from train or eval mode.

Paper: sections 3.1 and 3.2.3
"""

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def padding_mask(ids: Int[Tensor, "B S"], pad_id: int = 0) -> Bool[Tensor, "B 1 1 S"]:
    """Hide padding: every query of a sentence may attend to its real tokens only.

    The two middle axes broadcast over heads and queries. Queries at padding are left alone: what
    they compute is never used, and a row that may see nothing would have no weights.

    Args:
        ids: token ids.
        pad_id: the id that fills short sentences up.
    """
    return (ids != pad_id)[:, None, None, :]


def causal_mask(length: int, device: torch.device | str | None = None) -> Bool[Tensor, "T T"]:
    """Hide the future: position i may attend to positions 0..i, itself included.

    Args:
        length: number of positions T.
        device: where to make it.

    Paper: section 3.2.3
    """
    return torch.ones(length, length, dtype=torch.bool, device=device).tril()
