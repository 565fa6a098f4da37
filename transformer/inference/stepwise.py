"""What a search needs from a model, and what both searches do with it.

Paper: section 6.1
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

EXTRA_LENGTH = 50


@runtime_checkable
class StepwiseModel(Protocol):
    """What a model must offer to be searched, be it a Transformer or a recurrent baseline.

    A state holds rows; row r belongs to sentence r // beam_size. ``start_decoding`` encodes the
    sources once. ``decode_next`` takes the last token of each row and gives logits for the next.
    ``state.reorder(rows)`` makes row i continue what row rows[i] has read so far; a sentence whose
    rows are all left out leaves the batch.

    Paper: not in the paper (the paper does not describe its search in code)
    """

    config: Any

    def start_decoding(
        self, source: Int[Tensor, "B S"], beam_size: int = 1, *, max_length: int
    ) -> Any: ...

    def decode_next(self, tokens: Int[Tensor, " rows"], state: Any) -> Float[Tensor, "rows V"]: ...


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Switch dropout off, and afterwards on again where it was on.

    Paper: not in the paper
    """
    training = [module for module in model.modules() if module.training]
    model.eval()
    try:
        yield
    finally:
        for module in training:
            module.training = True


def next_logits(
    model: StepwiseModel, last: Int[Tensor, " rows"], state: Any
) -> tuple[Float[Tensor, "rows V"], Float[Tensor, " rows"]]:
    """Ask for the next token of each row.

    Returns:
        The logits in float32, -inf at padding and BOS, which are never produced; and the
        logarithm of the softmax's denominator, which has all tokens in it.

    Raises:
        ValueError: if a logit is NaN or infinite.

    Paper: not in the paper
    """
    logits = model.decode_next(last, state).float()
    normaliser = logits.logsumexp(dim=-1)
    if not normaliser.isfinite().all():
        raise ValueError("model: its logits are not finite numbers (NaN or infinity)")
    forbidden = torch.tensor([model.config.pad_id, model.config.bos_id], device=logits.device)
    return logits.index_fill(-1, forbidden, -math.inf), normaliser


def length_limits(model: StepwiseModel, source: Tensor, max_length: int | None) -> Tensor:
    """Check the source and say how many tokens each sentence may become, EOS counted.

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
    if max_length is not None:
        if max_length < 1:
            raise ValueError(f"max_length must be at least 1, got {max_length}")
        return torch.full((len(source),), max_length, device=source.device)
    real = (source != config.pad_id) & (source != config.eos_id)
    limit = real.sum(dim=1) + EXTRA_LENGTH
    # Sinusoids and recurrent models go on for ever; a table of learned positions does not.
    if getattr(config, "positions", None) == "learned":
        limit = limit.clamp(max=config.max_length)
    return limit
