"""How surprised a model is by text that it was not trained on.

Paper: section 6.2, Table 3
"""

import math
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from transformer.data.batching import TokenBatches
from transformer.model.interface import TranslationModel
from transformer.training.loss import TranslationLoss


@torch.no_grad()
def perplexity(
    model: TranslationModel,
    batches: TokenBatches,
    autocast: AbstractContextManager[Any] | None = None,
) -> float:
    """Return exp of the mean negative log-likelihood a target token, label smoothing off.

    Dropout is off too. A perplexity is one of wordpieces, ``eos_id`` included, so it compares
    with others of the same vocabulary only.

    Args:
        model: as for :class:`~transformer.training.loss.TranslationLoss`.
        batches: pairs to measure on.
        autocast: the precision to compute in; None for that of the weights.

    Paper: section 6.2, Table 3
    """
    was_training, device = model.training, next(model.parameters()).device
    loss = TranslationLoss(model).eval()
    nll = tokens = 0.0
    with autocast or nullcontext():
        for rows in batches.epoch(0):
            batch = batches.batch(rows).to(device)
            nll += loss(batch.source, batch.target_input, batch.labels)[1].item()
            tokens += batch.num_target_tokens
    model.train(was_training)
    return math.exp(min(nll / tokens, 700.0))
