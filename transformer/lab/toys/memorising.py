"""One batch learned by heart, with the model whole or with a bug planted in it.

A model that cannot learn a handful of pairs by heart is broken. The reverse does not follow, and
how far it does not is what the planted bugs measure. All of them leave a program that runs without
an error; most have stood in published code.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn

from transformer.data.batching import Batch
from transformer.lab.toys.peeking import PeekingTransformer
from transformer.lab.toys.properties import Shift, shift_right
from transformer.model.config import TransformerConfig
from transformer.model.positional import NoPositions
from transformer.model.transformer import Transformer
from transformer.training.loss import TranslationLoss
from transformer.training.progress import progress


@dataclass(frozen=True)
class Bug:
    """A change that makes a right model wrong.

    Args:
        name: what is wrong, in words.
        changes: fields of the configuration.
        plant: changes the model once it is made.
        future: how many positions ahead the decoder sees.
        shifted: feed the decoder the labels one position late, as it should be.
    """

    name: str
    changes: dict[str, Any] = field(default_factory=dict)
    plant: Callable[[Transformer], None] = lambda model: None
    future: int = 0
    shifted: bool = True

    def make(self, config: TransformerConfig) -> Transformer:
        """Draw a model and plant the bug in it.

        Args:
            config: of the right model.
        """
        config = TransformerConfig.from_dict(config.to_dict() | self.changes)
        model = PeekingTransformer(config, self.future) if self.future else Transformer(config)
        self.plant(model)
        return model

    def shift(self, labels: Int[Tensor, "B T"]) -> Int[Tensor, "B T"]:
        """Make the decoder's input from the labels.

        Args:
            labels: the tokens to predict.

        Paper: section 3.1
        """
        return shift_right(labels) if self.shifted else labels


def _take_positions_out(model: Transformer) -> None:
    model.positions = model.target_positions = NoPositions()


def _cut_the_source_off(model: Transformer) -> None:
    for layer in model.decoder:
        for parameter in layer.cross_attention.out_projection.parameters():
            nn.init.zeros_(parameter).requires_grad_(False)


def _decode_at_position_0(model: Transformer) -> None:
    whole = model.decode_next

    def decode_next(tokens: Tensor, state: Any) -> Tensor:
        state.position = 0
        return whole(tokens, state)

    vars(model)["decode_next"] = decode_next


def _leave_embeddings_small(model: Transformer) -> None:
    model.embedding.scale = 1.0


NO_BUG = Bug("nothing wrong")
BUGS = (
    Bug("source cut off", plant=_cut_the_source_off),
    Bug("target not shifted", shifted=False),
    Bug("no causal mask", future=10_000),
    Bug("decodes at position 0", plant=_decode_at_position_0),
    Bug("no positions", plant=_take_positions_out),
    # The last id of the vocabulary: put one there that the data does not use.
    Bug("wrong id for padding", changes=dict(pad_id=15)),
    Bug("scores not divided", changes=dict(attention_scale=1.0)),
    Bug("embeddings not scaled", plant=_leave_embeddings_small),
    Bug("a norm too many", changes=dict(final_norm=True)),
)


def memorise(
    model: Transformer,
    batch: Batch,
    steps: int = 120,
    rate: float = 5e-3,
    shift: Shift = shift_right,
) -> np.ndarray:
    """Train on one and the same batch, and return the losses, in nats a token.

    Args:
        model: trained in place, and left in evaluation mode.
        batch: the pairs to learn.
        steps: optimiser steps.
        rate: the constant learning rate.
        shift: makes the decoder's input from the labels.

    Returns:
        The loss of each step, of shape (steps,).
    """
    objective = TranslationLoss(model, epsilon=0.0)
    optimizer = torch.optim.Adam(
        model.parameters(), lr=rate, betas=(0.9, 0.98), eps=1e-9, fused=True
    )
    target_input = shift(batch.labels)
    tokens = (batch.labels != model.config.pad_id).sum()
    model.train()
    losses = []
    for _ in progress(range(steps)):
        total, _ = objective(batch.source, target_input, batch.labels)
        loss = total / tokens
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    return np.array(losses)
