"""Random facts, memorised by small networks with and without a feed-forward layer."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention
from transformer.model.layers import EncoderLayer, PositionwiseFeedForward, Residual
from transformer_book.figures import figure, plot_runs
from transformer_book.statistics import paired_interval
from transformer_book.studies.lacking import Missing, Runs, lacking
from transformer_book.studies.together import Together
from transformer_book.studies.training_loop import optimise

RECORD = Path(__file__).parent / "record.json"

SYMBOLS = 24
STEPS = (500, 1500)  # training steps after which the networks are measured
RATES = (0.001, 0.003, 0.01, 0.03)  # learning rates
SEEDS = tuple(range(1, 11))


@dataclass(frozen=True)
class Shape:
    """The size of a network: its vectors, layers, and hidden units per feed-forward layer."""

    d_model: int = 16
    layers: int = 1
    d_ff: int = 0  # 0 to leave the layer out

    @property
    def name(self) -> str:
        """Name in the record."""
        return f"{self.d_model}-{self.layers}-{self.d_ff}"


BARE = Shape()
# Three ways to enlarge it. The last two have about as many parameters as 32, 64 and 128 units.
WAYS = {
    "feed-forward layer": tuple(Shape(d_ff=units) for units in (8, 16, 32, 64, 128)),
    "wider attention": tuple(Shape(d_model=size) for size in (22, 26, 34)),
    "more layers of attention": tuple(Shape(layers=count) for count in (2, 3, 4, 5)),
}


class Silence(PositionwiseFeedForward):
    """A feed-forward layer without parameters that outputs zeros."""

    def __init__(self) -> None:
        nn.Module.__init__(self)

    def forward(self, x: Tensor) -> Tensor:
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

    def forward(self, pairs: Tensor) -> Tensor:
        """Return the logits of the answers."""
        x = F.embedding(pairs, self.embedding) * self.embedding.size(1) ** 0.5 + self.positions
        for layer in self.layers:
            x = layer(x)
        return x[:, 1] @ self.embedding.T


def all_pairs(task: str) -> tuple[Tensor, Tensor]:
    """Return every pair of symbols and its answer: a random symbol, or to "move" the first one."""
    pairs = torch.cartesian_prod(torch.arange(SYMBOLS), torch.arange(SYMBOLS))
    if task == "move":
        return pairs, pairs[:, 0]
    answers = np.random.default_rng(0).integers(0, SYMBOLS, len(pairs))
    return pairs, torch.from_numpy(answers)


def learn(shape: Shape, task: str, rate: float) -> list[list[float]]:
    """Train one network per seed at a constant rate after a warm-up; measure them on the way."""
    pairs, answers = all_pairs(task)
    networks = Together(lambda: FactNetwork(shape), SEEDS)
    draws = [np.random.default_rng(seed) for seed in SEEDS]
    shares, done = [], 0

    def loss(step: int) -> Tensor:
        rows = torch.from_numpy(np.stack([draw.integers(len(pairs), size=128) for draw in draws]))
        logits = networks(pairs[rows])
        # The sum over the networks, so that each gets the gradient of its own mean loss.
        return F.cross_entropy(logits.flatten(0, 1), answers[rows].flatten()) * len(SEEDS)

    for goal in STEPS:
        start = done

        def climb(step: int, start: int = start) -> float:
            return rate * min(1.0, (start + step) / 100)

        optimise(networks, loss, goal - done, climb)
        done = goal
        with torch.no_grad():
            logits = networks(pairs.expand(len(SEEDS), -1, -1))
        shares.append((logits.argmax(dim=-1) == answers).float().mean(dim=1).tolist())
    return np.transpose(shares).tolist()


def known(
    runs: Runs, shape: Shape, step: int = STEPS[-1], rate: float | None = None, task: str = "know"
) -> Float[np.ndarray, "seeds"]:
    """Return the recorded shares after a step, at the learning rate with the best mean if None."""
    found = {
        run["rate"]: np.array(run["shares"])[:, STEPS.index(step)]
        for run in runs
        if (run["shape"], run["task"]) == (shape.name, task)
    }
    return found[rate] if rate else max(found.values(), key=np.mean)


def lead(
    runs: Runs, units: int, rival: Shape, step: int = STEPS[-1], rate: float | None = None
) -> str:
    """Write the lead of a feed-forward layer over a network without one, in points."""
    ours, theirs = (known(runs, shape, step, rate) for shape in (Shape(d_ff=units), rival))
    low, high = paired_interval(100 * (ours - theirs))
    return f"{100 * (ours - theirs).mean():+.1f} ({low:+.1f} to {high:+.1f})"


def by_size(runs: Runs) -> None:
    """Draw the shares of facts known by the number of parameters."""
    sizes = {run["shape"]: run["parameters"] for run in runs}
    axes: Any = figure(height=3.8)[1]
    looks = zip(WAYS.items(), ("purple", "brown", "grey"), ("-", "--", ":"), strict=True)
    for (name, shapes), colour, line in looks:
        shapes = (BARE, *shapes)
        shares = np.transpose([known(runs, shape) for shape in shapes])
        plot_runs(axes, [sizes[s.name] for s in shapes], shares, colour, name, ls=line, marker="o")
    axes.set(xlabel="parameters", ylabel="facts known", ylim=(0, 1.03))
    axes.set_yticks([0, 0.5, 1], ["0", "50%", "100%"])
    axes.legend(loc=(0.42, 0.08))
    plt.show()


#: What the record says before its runs.
HEADING = dict(steps=STEPS, seeds=SEEDS)


def missing(runs: Runs) -> Missing:
    """Train what a record lacks, and yield each run with a line about it."""
    shapes = {shape.name: shape for shape in (BARE, *sum(WAYS.values(), ()))}
    cases = [*lacking(runs, shape=[BARE.name], task=["move"], rate=RATES)]
    for case in cases + [*lacking(runs, shape=shapes, task=["know"], rate=RATES)]:
        shape = shapes[case["shape"]]
        shares = learn(**case | dict(shape=shape))
        parameters = sum(weight.numel() for weight in FactNetwork(shape).parameters())
        means = np.mean(shares, axis=0).tolist()
        yield case | dict(parameters=parameters, shares=shares), f"{case}: {means}"
