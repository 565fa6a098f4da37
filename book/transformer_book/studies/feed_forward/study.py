"""Random facts, memorised by small networks with and without a feed-forward layer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention
from transformer.model.layers import EncoderLayer, PositionwiseFeedForward, Residual
from transformer_book.studies.lacking import Missing, Runs, lacking
from transformer_book.studies.together import Together
from transformer_book.studies.training_loop import optimise

RECORD = Path(__file__).parent / "record.json"

SYMBOLS = 24
STEPS = (500, 1500)  # training steps after which the networks are measured
RATES = (0.001, 0.003, 0.01, 0.03)  # learning rates
SEEDS = tuple(range(1, 11))
BATCH = 128

# "know": a random symbol for each pair. "move": the first symbol of the pair.
Task = Literal["know", "move"]


@dataclass(frozen=True)
class Shape:
    """The size of a network, layer by layer."""

    d_model: int = 16  #: size of the vectors.
    layers: int = 1  #: number of encoder layers.
    d_ff: int = 0  #: hidden units per feed-forward layer; 0 to leave the layer out.

    @property
    def name(self) -> str:
        """Name in the record."""
        return f"{self.d_model}-{self.layers}-{self.d_ff}"


BARE = Shape()
FEED_FORWARD = tuple(Shape(d_ff=units) for units in (8, 16, 32, 64, 128))
# Attention alone, about as large as with 32, 64 and 128 hidden units.
WIDER = tuple(Shape(d_model=size) for size in (22, 26, 34))
# Attention alone; 2, 3 and 5 layers are about as large as 32, 64 and 128 hidden units.
DEEPER = tuple(Shape(layers=count) for count in (2, 3, 4, 5))


class Silence(PositionwiseFeedForward):
    """A feed-forward layer without parameters that outputs zeros."""

    def __init__(self) -> None:
        nn.Module.__init__(self)

    def forward(self, x: Float[Tensor, "B T d_model"]) -> Float[Tensor, "B T d_model"]:
        """Return zeros."""
        return torch.zeros_like(x)


class FactNetwork(nn.Module):
    """Encoder layers that read a pair of symbols and answer at the second position."""

    def __init__(self, shape: Shape):
        super().__init__()
        size = shape.d_model
        self.embedding = nn.Parameter(torch.randn(SYMBOLS, size) / size**0.5)
        self.positions = nn.Parameter(torch.randn(2, size))
        self.layers = nn.ModuleList(
            EncoderLayer(
                MultiHeadAttention(size, 2),
                PositionwiseFeedForward(size, shape.d_ff) if shape.d_ff else Silence(),
                lambda: Residual(size, dropout=0.0),
            )
            for _ in range(shape.layers)
        )

    def forward(self, pairs: Int[Tensor, "B 2"]) -> Float[Tensor, "B symbols"]:
        """Return the logits of the answers."""
        x = F.embedding(pairs, self.embedding) * self.embedding.size(1) ** 0.5 + self.positions
        for layer in self.layers:
            x = layer(x)
        return x[:, 1] @ self.embedding.T


def all_pairs(task: Task) -> tuple[Int[Tensor, "pairs 2"], Int[Tensor, "pairs"]]:
    """Return every pair of symbols and its answer; both are the same on every call."""
    pairs = torch.cartesian_prod(torch.arange(SYMBOLS), torch.arange(SYMBOLS))
    if task == "move":
        return pairs, pairs[:, 0]
    answers = np.random.default_rng(0).integers(0, SYMBOLS, len(pairs))
    return pairs, torch.from_numpy(answers)


def learn(
    shape: Shape,
    task: Task,
    rate: float,
    seeds: Sequence[int] = SEEDS,
    steps: Sequence[int] = STEPS,
) -> list[list[float]]:
    """Train one network per seed at a constant rate after a warm-up; measure them on the way."""
    pairs, answers = all_pairs(task)
    networks = Together(lambda: FactNetwork(shape), seeds)
    draws = [np.random.default_rng(seed) for seed in seeds]
    shares, done = [], 0

    def loss(step: int) -> Tensor:
        rows = torch.from_numpy(np.stack([draw.integers(len(pairs), size=BATCH) for draw in draws]))
        logits = networks(pairs[rows])
        # The sum over the networks, so that each gets the gradient of its own mean loss.
        return F.cross_entropy(logits.flatten(0, 1), answers[rows].flatten()) * len(seeds)

    for goal in steps:
        start = done

        def climb(step: int, start: int = start) -> float:
            return rate * min(1.0, (start + step) / 100)

        optimise(networks, loss, goal - done, climb)
        done = goal
        with torch.no_grad():
            logits = networks(pairs.expand(len(seeds), -1, -1))
        shares.append((logits.argmax(dim=-1) == answers).float().mean(dim=1).tolist())
    return np.transpose(shares).tolist()


def parameters(shape: Shape) -> int:
    """Count the parameters of a network."""
    return sum(weight.numel() for weight in FactNetwork(shape).parameters())


def shares_of(
    runs: Iterable[Mapping[str, Any]], shape: Shape, rate: float, task: Task = "know"
) -> Float[np.ndarray, "seeds steps"]:
    """Return the recorded shares for one shape, learning rate and task."""
    wanted = shape.name, rate, task
    (found,) = [r["shares"] for r in runs if (r["shape"], r["rate"], r["task"]) == wanted]
    return np.array(found)


def best_rate(
    runs: Sequence[Mapping[str, Any]], shape: Shape, step: int, task: Task = "know"
) -> float:
    """Return the learning rate with the highest mean share after one of ``STEPS``."""
    at = STEPS.index(step)
    return max(RATES, key=lambda rate: shares_of(runs, shape, rate, task)[:, at].mean())


#: What the record says before its runs.
HEADING = dict(steps=STEPS, seeds=SEEDS)


def missing(runs: Runs) -> Missing:
    """Train what a record lacks, and yield each run with a line about it."""
    shapes = {shape.name: shape for shape in (BARE, *FEED_FORWARD, *WIDER, *DEEPER)}
    cases = [*lacking(runs, shape=[BARE.name], task=["move"], rate=RATES)]
    for case in cases + [*lacking(runs, shape=shapes, task=["know"], rate=RATES)]:
        shape = shapes[case["shape"]]
        shares = learn(**case | dict(shape=shape))
        means = [sum(share) / len(SEEDS) for share in zip(*shares, strict=True)]
        yield case | dict(parameters=parameters(shape), shares=shares), f"{case}: {means}"
