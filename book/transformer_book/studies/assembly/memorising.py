"""Training on one batch until it is memorised, with a correct model or a planted bug."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Int
from torch import Tensor, nn

from transformer.data.batching import Batch
from transformer.model.config import TransformerConfig
from transformer.model.positional import NoPositions
from transformer.model.transformer import Transformer
from transformer.training.loss import TranslationLoss
from transformer_book.studies.masks.peeking import PeekingTransformer
from transformer_book.studies.properties import Shift, shift_right
from transformer_book.studies.training_loop import optimise


@dataclass(frozen=True)
class Bug:
    """A change that makes a correct model wrong."""

    name: str
    changes: dict[str, Any] = field(default_factory=dict)
    #: a function that changes the finished model.
    plant: Callable[[Transformer], None] = lambda model: None
    future: int = 0  #: number of later positions that the decoder can see.
    #: whether the decoder's input is shifted by one position, as it should be.
    shifted: bool = True

    def make(self, config: TransformerConfig) -> Transformer:
        """Make a model with this bug from the configuration of the correct one."""
        config = TransformerConfig.from_dict(config.to_dict() | self.changes)
        model = PeekingTransformer(config, self.future) if self.future else Transformer(config)
        self.plant(model)
        return model

    def shift(self, labels: Int[Tensor, "B T"]) -> Int[Tensor, "B T"]:
        """Make the decoder's input from the labels."""
        return shift_right(labels) if self.shifted else labels


def _take_positions_out(model: Transformer) -> None:
    model.positions = model.target_positions = NoPositions()


def _cut_the_source_off(model: Transformer) -> None:
    for layer in model.decoder:
        for parameter in layer.cross_attention.output_projection.parameters():
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
    # The last id of the vocabulary; the data must not use it.
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
    """Train on a single batch over and over, and return the losses."""
    objective = TranslationLoss(model, epsilon=0.0)
    target_input = shift(batch.labels)
    tokens = (batch.labels != model.config.pad_id).sum()

    def loss(step: int) -> Tensor:
        return objective(batch.source, target_input, batch.labels)[0] / tokens

    return np.array(optimise(model, loss, steps, lambda step: rate))
