"""Facts that follow from no rule, and a Transformer without the layer that could store them.

A fact is a random symbol for each pair of symbols, so a model can answer only from memory.

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
    """Make a task with a random answer for each pair: ``symbols ** 2`` facts in all."""
    answers = np.random.default_rng(seed).integers(0, symbols, (symbols, symbols)) + FIRST_SYMBOL

    def recall(pair: np.ndarray) -> np.ndarray:
        first, second = pair - FIRST_SYMBOL
        return answers[first, second][None]

    return ToyTask(recall, symbols, shortest=2, longest=2)


class Silence(nn.Module):
    """A sub-layer that outputs zeros, so that the residual sum around it is its input."""

    def forward(self, x: Float[Tensor, "B T d_model"]) -> Float[Tensor, "B T d_model"]:
        """Return zeros."""
        return torch.zeros_like(x)


class AttentionOnlyTransformer(Transformer):
    """A Transformer whose feed-forward layers output zeros; ``d_ff`` has no effect.

    Residual sums and layer norms stay in place. A seed draws the same attention weights and
    embeddings as for a :class:`~transformer.model.transformer.Transformer`.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__(config)
        for layer in [*self.encoder, *self.decoder]:
            layer.feed_forward = Silence()
