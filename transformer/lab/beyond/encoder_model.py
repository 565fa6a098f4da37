"""The encoder of the paper on its own, with whatever goes in and whatever comes out.

What is not the paper's is a matrix at each end: one that turns the input into vectors of d_model
numbers, and one that turns the encoder's output, or its mean, into the answer.

Paper: section 3.1, Encoder (the blocks); section 7 (other inputs and outputs than text)
"""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer.model.config import TransformerConfig
from transformer.model.interface import ModuleLike
from transformer.model.masks import padding_mask
from transformer.model.transformer import Transformer
from transformer.training.progress import progress


class VectorEmbedding(nn.Module):
    """A matrix times a vector of numbers, times sqrt(d_model), in place of looking up a token.

    Drawn and scaled as a :class:`~transformer.model.embedding.TokenEmbedding` is: for vectors with
    a single 1 it is the same thing. So the result is as large as the positions that are added.

    Args:
        features: numbers a position.
        d_model: size of a vector.

    Paper: section 3.4
    """

    def __init__(self, features: int, d_model: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(features, d_model))
        nn.init.normal_(self.weight, std=d_model**-0.5)
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.scale = math.sqrt(d_model)

    def forward(self, x: Float[Tensor, "B S features"]) -> Float[Tensor, "B S d_model"]:
        """Embed each position.

        Paper: section 3.4
        """
        return (x @ self.weight + self.bias) * self.scale


class EncoderModel(nn.Module):
    """Vectors, positions, encoder layers, and an answer: one a sequence, or one a position.

    Positions, dropout and layers are those of a :class:`~transformer.model.transformer.Transformer`
    with this configuration, taken out of it as they are.

    Args:
        config: sizes and options; nothing of the decoder is kept.
        inputs: turns what comes in into (B, S, d_model), such as a
            :class:`~transformer.model.embedding.TokenEmbedding` or a :class:`VectorEmbedding`.
        outputs: size of an answer.
        each: answer at each position; otherwise once, from the mean over the positions.

    Raises:
        ValueError: if ``outputs`` is below 1.

    Paper: section 3.1, Encoder
    """

    def __init__(
        self, config: TransformerConfig, inputs: nn.Module, outputs: int, each: bool = False
    ):
        super().__init__()
        if outputs < 1:
            raise ValueError(f"outputs must be at least 1, got {outputs}")
        whole = Transformer(config)
        self.config, self.inputs, self.each = config, inputs, each
        self.positions, self.dropout = whole.positions, whole.dropout
        self.layers, self.norm = whole.encoder, whole.encoder_norm
        self.answer = nn.Linear(config.d_model, outputs)

    def forward(
        self,
        x: Int[Tensor, "B S"] | Float[Tensor, "B S features"],
        maps: list[Tensor] | None = None,
    ) -> Float[Tensor, "B *positions outputs"]:
        """Answer for each sequence of a batch.

        Args:
            x: token ids, padded with ``pad_id``, which nothing attends to and which has no part
                in the mean; or feature vectors, all of them real.
            maps: a list to append each layer's attention weights to, (B, H, S, S).

        Returns:
            (B, outputs), or (B, S, outputs) with ``each``. The mean of a sequence that is all
            padding counts as zeros.

        Paper: section 3.1, Encoder
        """
        ids = not x.is_floating_point()
        mask = padding_mask(x, self.config.pad_id) if ids else None
        y = self.dropout(self.positions(self.inputs(x)))
        for layer in self.layers:
            y = layer(y, mask, maps)
        y = self.norm(y)
        if self.each:
            return self.answer(y)
        if not ids:
            return self.answer(y.mean(dim=1))
        real = (x != self.config.pad_id)[..., None]
        return self.answer(torch.where(real, y, 0.0).sum(dim=1) / real.sum(dim=1).clamp(min=1))


def train_by_rows(
    model: ModuleLike,
    loss: Callable[[Int[Tensor, " rows"]], Float[Tensor, ""]],
    examples: int,
    steps: int,
    batch_size: int = 64,
    rate: int | float = 2e-3,
    warmup_steps: int = 20,
    seed: int = 0,
) -> list[float]:
    """Train any model on any examples: Adam as in the paper, a short warm-up, a rate that falls.

    The rate climbs to ``rate`` along a line and falls to zero along another. Each example is seen
    once before any is seen again.

    Args:
        model: trained in place, and left in evaluation mode.
        loss: takes the numbers of the examples of one step, and returns their mean loss.
        examples: how many there are, at least ``batch_size``.
        steps: optimiser steps, at least 1.
        batch_size: examples a step.
        rate: the highest learning rate.
        warmup_steps: steps of the climb.
        seed: of the order and of dropout. Seed the weights before the model is made.

    Returns:
        The loss of each step.

    Raises:
        ValueError: if there are fewer examples than a batch takes, or no step is to be made.

    Paper: section 5.3 (the optimiser; the schedule is another)
    """
    if examples < batch_size or steps < 1:
        raise ValueError(
            f"examples must be at least batch_size and steps at least 1, "
            f"got {examples}, {batch_size} and {steps}"
        )
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
    generator = torch.Generator().manual_seed(seed)
    losses, waiting = [], torch.empty(0, dtype=torch.long)
    model.train()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for step in progress(range(steps)):
            if len(waiting) < batch_size:
                waiting = torch.cat([waiting, torch.randperm(examples, generator=generator)])
            rows, waiting = waiting[:batch_size], waiting[batch_size:]
            for group in optimizer.param_groups:
                climb = (step + 1) / max(warmup_steps, 1)
                group["lr"] = rate * min(climb, 1.0) * (1 - step / steps)
            value = loss(rows)
            optimizer.zero_grad()
            value.backward()
            optimizer.step()
            losses.append(value.item())
    model.eval()
    return losses


@torch.no_grad()
def answers(
    model: nn.Module, inputs: Tensor, batch_size: int = 512
) -> Float[Tensor, "examples outputs"]:
    """Run a model on many examples, a few at a time.

    Args:
        model: in evaluation mode.
        inputs: (examples, ...), of any shape that the model takes.
        batch_size: examples at once.
    """
    return torch.cat([model(part) for part in inputs.split(batch_size)])


def pad_rows(rows: Sequence[Sequence[int]], pad_id: int = 0) -> Int[Tensor, "B S"]:
    """Make one matrix of rows of ids, the shorter ones filled up at the end.

    Args:
        rows: at least one.
        pad_id: what to fill with.

    Paper: section 5.1
    """
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[pad_id] * (longest - len(row))] for row in rows])
