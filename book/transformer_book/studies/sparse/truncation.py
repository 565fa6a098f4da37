"""Truncated backpropagation through time: a state passes between parts, its gradient does not."""

from pathlib import Path

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer_book.studies.lacking import Missing, Runs, lacking
from transformer_book.studies.sparse.delayed_echo import NOTHING, Echo


class RecurrentReader(nn.Module):
    """A GRU that labels each position of a stream."""

    def __init__(self, symbols: int = 8, size: int = 32):
        super().__init__()
        self.embedding = nn.Embedding(symbols, size)
        self.gru = nn.GRU(size, size, batch_first=True)
        self.output = nn.Linear(size, symbols)

    def forward(
        self, tokens: Int[Tensor, "B T"], state: Float[Tensor, "1 B size"] | None = None
    ) -> tuple[Float[Tensor, "B T symbols"], Float[Tensor, "1 B size"]]:
        """Return the logits of each position and the last state."""
        states, last = self.gru(self.embedding(tokens), state)
        return self.output(states), last


def add_gradient(
    model: RecurrentReader,
    tokens: Int[Tensor, "B T"],
    labels: Int[Tensor, "B T"],
    cut: int | None = None,
) -> float:
    """Add the gradient of the mean loss of a stream, cut after every few positions."""
    state, total, size = None, 0.0, cut or tokens.size(1)
    for said, label in zip(tokens.split(size, 1), labels.split(size, 1), strict=True):
        logits, state = model(said, state)
        loss = F.cross_entropy(logits.mT, label, ignore_index=NOTHING, reduction="sum")
        loss = loss / (labels != NOTHING).sum()
        if loss.requires_grad:
            loss.backward()
        total, state = total + loss.item(), state.detach()
    return total


RECORD = Path(__file__).parent / "truncation.json"

DELAY = 4
LENGTH = 24
CUTS = (1, 2, 4, 6, 8, 12, 24)
#: In place of a cut: only the output layer is trained, on the states of the untrained GRU.
FROZEN = 0
RATES = (1e-2,)
SEEDS = (1, 2, 3, 4)
STEPS = 400

#: What the record says before its runs.
HEADING = dict(delay=DELAY, length=LENGTH, steps=STEPS, task="one of eight symbols")


def learn(cut: int, rate: float, seed: int, steps: int = STEPS) -> float:
    """Train a reader to repeat the symbol ``DELAY`` positions before; return its accuracy."""
    torch.manual_seed(seed)
    model, task = RecurrentReader(), Echo(DELAY)
    generator = torch.Generator().manual_seed(seed)
    trained = model.output if cut == FROZEN else model
    model.requires_grad_(False)
    trained.requires_grad_(True)
    optimizer = torch.optim.Adam(trained.parameters(), lr=rate)
    for step in range(1, steps + 1):
        for group in optimizer.param_groups:
            group["lr"] = rate * min(20 * step / steps, 1.05 * (1 - step / steps) + 0.01)
        optimizer.zero_grad()
        add_gradient(model, *task.draw(16, LENGTH, generator), cut or None)
        nn.utils.clip_grad_norm_(trained.parameters(), 1.0)
        optimizer.step()
    with torch.no_grad():
        tokens, labels = task.draw(64, LENGTH, torch.Generator().manual_seed(10**6))
        said = model(tokens)[0].argmax(-1)
    return float((said == labels)[labels != NOTHING].float().mean())


def missing(runs: Runs) -> Missing:
    """Train what a record lacks, and yield each run with a line about it."""
    for case in lacking(runs, rate=RATES, seed=SEEDS, cut=(FROZEN, *CUTS)):
        right = learn(**case)
        yield case | dict(right=right), f"{case}: {right:.3f}"
