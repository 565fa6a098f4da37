"""Token embeddings, scaled by sqrt(d_model)."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

#: The types that token ids may have, those that PyTorch's embedding takes.
ID_TYPES = (torch.int64, torch.int32)


def require_ids(name: str, ids: Tensor, rows: int | None = None) -> None:
    """Raise TypeError or ValueError unless ids are an integer matrix with something in each row."""
    form = "ids of shape (batch, length)"
    if not isinstance(ids, Tensor):
        raise TypeError(f"{name} must be a tensor of {form}, got a {type(ids).__name__}")
    if ids.dim() != 2 or ids.size(1) == 0:
        raise ValueError(f"{name} must hold {form}, got shape {tuple(ids.shape)}")
    if ids.dtype not in ID_TYPES:
        raise ValueError(f"{name} must hold ids of type int64 or int32, got {ids.dtype}")
    if rows is not None and ids.size(0) != rows:
        raise ValueError(f"{name} must have {rows} rows like source, got {ids.size(0)}")


class TokenEmbedding(nn.Module):
    """Look up a vector for each token id and multiply it by sqrt(d_model).

    The factor matters because of the initialisation: the same matrix serves as the output
    projection, whose rows should have norm 1 (entries of variance 1 / d_model). Times
    sqrt(d_model) the entries have variance 1, as large as the positional encoding beside them.

    Paper: section 3.4
    """

    def __init__(self, vocab_size: int, d_model: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(vocab_size, d_model))
        nn.init.normal_(self.weight, std=d_model**-0.5)
        self.scale = math.sqrt(d_model)

    def forward(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T d_model"]:
        """Embed token ids.

        Raises:
            ValueError: on the CPU, if an id is negative or not below V. On a GPU the check would
                stall every step, and PyTorch's own assertion stops the program instead.
        """
        try:
            return nn.functional.embedding(ids, self.weight) * self.scale
        except IndexError:
            raise ValueError(
                f"token ids must be in 0..{len(self.weight) - 1}, "
                f"got {ids.min().item()}..{ids.max().item()}"
            ) from None
