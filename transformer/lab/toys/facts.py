"""Facts to know by heart, and a Transformer without the layer that could store them.

A fact is an answer that follows from no rule: a random symbol for each pair of symbols. Whoever
answers has to have it stored.

Paper: section 3.3
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer.lab.toys.toy import FIRST_SYMBOL, ToyTask
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer


def facts_task(symbols: int, seed: int = 0) -> ToyTask:
    """Make a task with a random answer for each pair: ``symbols ** 2`` facts in all.

    Args:
        symbols: how many different symbols there are.
        seed: of the answers.

    Returns:
        Sources of two symbols, targets of one.
    """
    answers = np.random.default_rng(seed).integers(0, symbols, (symbols, symbols)) + FIRST_SYMBOL

    def recall(pair: np.ndarray) -> np.ndarray:
        first, second = pair - FIRST_SYMBOL
        return answers[first, second][None]

    return ToyTask(recall, symbols, shortest=2, longest=2)


class Silence(nn.Module):
    """A sub-layer that has nothing to say: zeros, whatever comes in."""

    def forward(self, x: Float[Tensor, "B T d_model"]) -> Float[Tensor, "B T d_model"]:
        """Return zeros, so that the residual sum around it is ``x``."""
        return torch.zeros_like(x)


class AttentionOnlyTransformer(Transformer):
    """A Transformer whose feed-forward layers are silent; ``d_ff`` has no meaning in it.

    Residual sums and layer norms stay where they are. A seed draws the same attention weights and
    embeddings as for a :class:`~transformer.model.transformer.Transformer`.

    Args:
        config: sizes and options.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__(config)
        for layer in [*self.encoder, *self.decoder]:
            layer.feed_forward = Silence()
