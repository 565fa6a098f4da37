"""The encoder of the paper on its own, with a matrix at each end, for any inputs and outputs."""

import math
from collections.abc import Callable, Sequence

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer.model.config import TransformerConfig
from transformer.model.masks import padding_mask
from transformer.model.transformer import Transformer
from transformer_book.studies.training_loop import optimise


class VectorEmbedding(nn.Module):
    """A linear embedding of feature vectors, times sqrt(d_model)."""

    def __init__(self, features: int, d_model: int):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(features, d_model))
        nn.init.normal_(self.weight, std=d_model**-0.5)
        self.bias = nn.Parameter(torch.zeros(d_model))
        self.scale = math.sqrt(d_model)

    def forward(self, x: Float[Tensor, "B S features"]) -> Float[Tensor, "B S d_model"]:
        """Embed each position."""
        return (x @ self.weight + self.bias) * self.scale


class EncoderModel(nn.Module):
    """Embeddings, positions, encoder layers, and one answer per sequence or per position."""

    def __init__(
        self, config: TransformerConfig, inputs: nn.Module, outputs: int, each: bool = False
    ):
        super().__init__()
        whole = Transformer(config)
        self.config, self.inputs, self.each = config, inputs, each
        self.positions, self.dropout = whole.positions, whole.dropout
        self.layers, self.norm = whole.encoder, whole.encoder_norm
        self.answer = nn.Linear(config.d_model, outputs)

    def forward(
        self, x: Int[Tensor, "B S"] | Float[Tensor, "B S features"]
    ) -> Float[Tensor, "B *positions outputs"]:
        """Answer for each sequence of a batch."""
        ids = not x.is_floating_point()
        mask = padding_mask(x, self.config.pad_id) if ids else None
        y = self.dropout(self.positions(self.inputs(x)))
        for layer in self.layers:
            y = layer(y, mask)
        y = self.norm(y)
        return self.answer(y if self.each else mean_of_sequence(y, x, self.config.pad_id))


def mean_of_sequence(
    y: Float[Tensor, "B S features"],
    x: Int[Tensor, "B S"] | Float[Tensor, "B S inputs"],
    pad_id: int = 0,
) -> Float[Tensor, "B features"]:
    """Average ``y`` over the positions of each sequence ``x``, without the padding of token ids."""
    if x.is_floating_point():
        return y.mean(dim=1)
    real = (x != pad_id)[..., None]
    return torch.where(real, y, 0.0).sum(dim=1) / real.sum(dim=1).clamp(min=1)


def train_by_rows(
    model: nn.Module,
    loss: Callable[[Int[Tensor, " rows"]], Float[Tensor, ""]],
    examples: int,
    steps: int,
    batch_size: int = 64,
    rate: int | float = 2e-3,
    warmup_steps: int = 20,
    seed: int = 0,
) -> list[float]:
    """Train any model on any examples: Adam as in the paper, linear warm-up, linear decay to 0."""
    generator = torch.Generator().manual_seed(seed)
    waiting = torch.empty(0, dtype=torch.long)

    def next_loss(step: int) -> Tensor:
        nonlocal waiting
        if len(waiting) < batch_size:
            waiting = torch.cat([waiting, torch.randperm(examples, generator=generator)])
        rows, waiting = waiting[:batch_size], waiting[batch_size:]
        return loss(rows)

    def schedule(step: int) -> float:
        return rate * min(step / max(warmup_steps, 1), 1.0) * (1 - (step - 1) / steps)

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return optimise(model, next_loss, steps, schedule)


@torch.no_grad()
def answers(
    model: nn.Module, inputs: Tensor, batch_size: int = 512
) -> Float[Tensor, "examples outputs"]:
    """Run a model, in evaluation mode, on many examples in batches."""
    return torch.cat([model(part) for part in inputs.split(batch_size)])


def pad_rows(rows: Sequence[Sequence[int]], pad_id: int = 0) -> Int[Tensor, "B S"]:
    """Make a matrix of rows of ids, padded at the end."""
    longest = max(map(len, rows))
    return torch.tensor([[*row, *[pad_id] * (longest - len(row))] for row in rows])


def best_span(
    logits: Float[Tensor, "B S 2"], real: Bool[Tensor, "B S"]
) -> tuple[Int[Tensor, " B"], Int[Tensor, " B"]]:
    """Return the first and the last position of the most probable span."""
    starts, ends = logits.masked_fill(~real[..., None], -torch.inf).log_softmax(dim=1).unbind(-1)
    both = starts[:, :, None] + ends[:, None, :]
    order = torch.ones_like(both[0], dtype=torch.bool).triu()
    place = both.masked_fill(~order, -torch.inf).flatten(1).argmax(dim=1)
    return place // real.size(1), place % real.size(1)
