"""The steps that greedy search and beam search share.

Paper: section 6.1
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer.model.base import TranslationModel

EXTRA_LENGTH = 50

# Group sizes of best_tokens: a multiple of a processor's vector width, and a number that leaves few
# candidates and few groups.
_NEIGHBOURS, _ROWS = 128, 8


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Switch dropout off, and restore each module's mode afterwards."""
    training = [module for module in model.modules() if module.training]
    if training:
        model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


def next_log_probabilities(
    model: TranslationModel, last: Int[Tensor, " rows"], state: Any
) -> Float[Tensor, "rows V"]:
    """Compute the log-probabilities of the next token of each row.

    Returns:
        Natural logarithms of the softmax over all tokens, in float32; -inf at padding and BOS,
        which are never produced.

    Raises:
        ValueError: if a logit is NaN or infinite.
    """
    found = model.decode_next(last, state).float().log_softmax(dim=-1)
    if found[:, 0].isnan().any():  # one such logit makes its whole row NaN
        raise ValueError("model: its logits are not finite numbers (NaN or infinity)")
    found[:, model.config.pad_id] = found[:, model.config.bos_id] = -math.inf
    return found


def best_tokens(
    values: Float[Tensor, "rows V"], count: int
) -> tuple[Float[Tensor, "rows count"], Int[Tensor, "rows count"]]:
    """Find the ``count`` largest values of each row and their tokens.

    The maxima of many groups cost much less than a sort, and the ``count`` best values are in the
    ``count`` best groups. If ``count`` is 1, a group is a block of neighbours, so that the first of
    equal values is found; otherwise it is a strided set of tokens, which is faster.

    Args:
        values: a number for each token.
        count: at least 1. For 1 the first of equal values is found; for more, ``torch.topk``
            decides between equal values.

    Returns:
        The values, largest first, and their tokens; fewer than ``count`` if V is smaller.
    """
    size, device = values.size(1), values.device
    if count == 1:
        width = min(_NEIGHBOURS, size)
        end = size - size % width
        largest = values[:, :end].unflatten(1, (-1, width)).amax(-1).argmax(-1, keepdim=True)
        group, step = largest * width, torch.arange(width, device=device)
    else:
        columns = max(1, size // _ROWS)
        end = size - size % columns
        largest = values[:, :end].unflatten(1, (-1, columns)).amax(1)
        group = largest.topk(min(count, columns)).indices
        step = torch.arange(0, end, columns, device=device)
    tokens = (group[:, :, None] + step).flatten(1)
    if end < size:
        rest = torch.arange(end, size, device=device).expand(len(values), -1)
        tokens = torch.cat([tokens, rest], dim=1)
    values = values.gather(1, tokens)
    if count == 1:
        values, places = values.max(dim=1, keepdim=True)
    else:
        values, places = values.topk(min(count, size))
    return values, tokens.gather(1, places)


def length_limits(model: TranslationModel, source: Tensor, max_length: int | None) -> Tensor:
    """Check the source and return the maximum output length of each sentence, including EOS.

    Raises:
        ValueError: if ``source`` is not (B, S) ids in range with a real token in each row, or
            ``max_length`` is below 1.

    Paper: section 6.1 (maximum output length: input length + 50)
    """
    config = model.config
    if source.dim() != 2 or source.is_floating_point():
        raise ValueError(
            f"source must be token ids of shape (B, S), got {source.dtype} of {tuple(source.shape)}"
        )
    if source.numel() == 0:
        raise ValueError(f"source must hold at least one token, got shape {tuple(source.shape)}")
    low, high = source.min().item(), source.max().item()
    if low < 0 or high >= config.vocab_size:
        raise ValueError(f"source ids must be in 0..{config.vocab_size - 1}, got {low}..{high}")
    blank = (source == config.pad_id).all(dim=1).nonzero().flatten().tolist()
    if blank:
        raise ValueError(f"source must have a real token in each row, rows {blank} are padding")
    real = source != config.pad_id
    if (real[:, 1:] & ~real[:, :-1]).any():
        raise ValueError("source must be padded at the end of each row")
    if max_length is not None:
        if max_length < 1:
            raise ValueError(f"max_length must be at least 1, got {max_length}")
        return torch.full((len(source),), max_length, device=source.device)
    real = (source != config.pad_id) & (source != config.eos_id)
    limit = real.sum(dim=1) + EXTRA_LENGTH
    # Sinusoids and recurrent models have no length limit; learned positions do.
    if getattr(config, "positions", None) == "learned":
        limit = limit.clamp(max=config.max_length)
    return limit
