"""A task with a chosen distance: repeat the token a fixed number of positions before."""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from transformer_book.studies.sparse.segment_recurrence import SegmentModel
from transformer_book.studies.training_loop import optimise

#: The label of positions without a token at that distance.
NOTHING = -100


@dataclass(frozen=True)
class Echo:
    """Streams of random symbols, each labelled with the symbol ``delay`` positions before it."""

    delay: int
    symbols: int = 8

    def draw(
        self, streams: int, length: int, generator: torch.Generator
    ) -> tuple[Int[Tensor, "streams length"], Int[Tensor, "streams length"]]:
        """Draw tokens and labels; the first ``delay`` labels are ``NOTHING``."""
        tokens = torch.randint(self.symbols, (streams, length), generator=generator)
        labels = torch.full_like(tokens, NOTHING)
        labels[:, self.delay :] = tokens[:, : max(0, length - self.delay)]
        return tokens, labels


def _segments(tokens: Tensor, labels: Tensor, length: int) -> Iterator[tuple[int, Tensor, Tensor]]:
    for start in range(0, tokens.size(1), length):
        yield start, tokens[:, start : start + length], labels[:, start : start + length]


def train_echo(
    model: SegmentModel,
    task: Echo,
    segment: int,
    segments: int = 8,
    steps: int = 240,
    streams: int = 16,
    rate: float = 5e-3,
    seed: int = 0,
) -> None:
    """Train on fresh streams, one optimizer step per segment, with a memory between segments."""
    generator = torch.Generator().manual_seed(seed)

    def losses() -> Iterator[Tensor]:
        while True:
            memories = None
            tokens, labels = task.draw(streams, segments * segment, generator)
            for start, said, label in _segments(tokens, labels, segment):
                logits, memories = model(said, memories, start)
                real = label != NOTHING
                if real.any():
                    yield F.cross_entropy(logits[real], label[real])

    def schedule(step: int) -> float:
        return rate * min(20 * step / steps, 1.05 * (1 - step / steps) + 0.01)

    stream = losses()
    optimise(model, lambda step: next(stream), steps, schedule, eps=1e-8)


@torch.no_grad()
def echo_accuracy(
    model: SegmentModel,
    task: Echo,
    segment: int,
    segments: int = 8,
    streams: int = 64,
    seed: int = 10**6,
) -> Float[Tensor, " segments"]:
    """Return the accuracy in each segment of new streams."""
    generator = torch.Generator().manual_seed(seed)
    tokens, labels = task.draw(streams, segments * segment, generator)
    memories, shares = None, []
    for start, said, label in _segments(tokens, labels, segment):
        logits, memories = model(said, memories, start)
        real = label != NOTHING
        shares.append((logits.argmax(dim=-1) == label)[real].float().mean())
    return torch.stack(shares)
