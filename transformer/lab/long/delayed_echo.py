"""A task with a distance of one's choice: repeat what was said a fixed number of positions ago.

The tokens are drawn at random, so nothing but the token at that distance helps. A model that does
not reach so far can only guess.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from transformer.lab.long.segment_recurrence import SegmentModel

#: The label of positions at which nothing was said that long ago.
NOTHING = -100


@dataclass(frozen=True)
class Echo:
    """Streams of random symbols, each labelled with the symbol some positions before it.

    Args:
        delay: the distance, at least 0.
        symbols: how many different ones there are.
    """

    delay: int
    symbols: int = 8

    def draw(
        self, streams: int, length: int, generator: torch.Generator
    ) -> tuple[Int[Tensor, "streams length"], Int[Tensor, "streams length"]]:
        """Draw streams.

        Args:
            streams: how many.
            length: of each.
            generator: of the random numbers.

        Returns:
            Tokens and labels, (streams, length) each. The first ``delay`` labels are ``NOTHING``.
        """
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
    """Train on fresh streams, one optimiser step a segment, its memory handed on.

    Args:
        model: trained in place.
        task: what to repeat.
        segment: positions that are read at a time.
        segments: length of a stream in segments; then a new one begins, with nothing kept.
        steps: optimiser steps.
        streams: that are read side by side.
        rate: of Adam, climbed to over the first twentieth and left in a line to 0.
        seed: of the streams. Seed the weights before the model is made.

    Reference: Dai et al. 2019.
    """
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate, betas=(0.9, 0.98), fused=True)
    model.train()
    step = 0
    while step < steps:
        memories = None
        tokens, labels = task.draw(streams, segments * segment, generator)
        for start, said, label in _segments(tokens, labels, segment):
            logits, memories = model(said, memories, start)
            real = label != NOTHING
            if step == steps or not real.any():
                continue
            step += 1
            for group in optimizer.param_groups:
                group["lr"] = rate * min(20 * step / steps, 1.05 * (1 - step / steps) + 0.01)
            optimizer.zero_grad()
            F.cross_entropy(logits[real], label[real]).backward()
            optimizer.step()
    model.eval()


@torch.no_grad()
def echo_accuracy(
    model: SegmentModel,
    task: Echo,
    segment: int,
    segments: int = 8,
    streams: int = 64,
    seed: int = 10**6,
) -> Float[Tensor, " segments"]:
    """Read new streams and return the share of right labels in each segment.

    Args:
        model: the model.
        task: what to repeat.
        segment: positions that are read at a time.
        segments: length of a stream in segments.
        streams: how many.
        seed: of the streams.

    Returns:
        One number for each segment, in [0, 1]; NaN where a segment lies before the first echo.
    """
    generator = torch.Generator().manual_seed(seed)
    tokens, labels = task.draw(streams, segments * segment, generator)
    memories, shares = None, []
    for start, said, label in _segments(tokens, labels, segment):
        logits, memories = model(said, memories, start)
        real = label != NOTHING
        shares.append((logits.argmax(dim=-1) == label)[real].float().mean())
    return torch.stack(shares)
