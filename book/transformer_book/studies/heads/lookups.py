"""A task that needs several lookups at once, and one layer of attention to solve it."""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention
from transformer_book.studies.training_loop import optimise


@dataclass(frozen=True)
class Lookups:
    """The task of finding the values of the requested keys."""

    slots: int
    entries: int
    keys: int
    values: int

    def batch(
        self, size: int, seed: int
    ) -> tuple[Int[Tensor, "B slots"], Int[Tensor, "B entries 2"], Int[Tensor, "B slots"]]:
        """Draw requested keys, tables of (key, value), and the right values."""
        generator = torch.Generator().manual_seed(seed)
        order = torch.rand(size, self.keys, generator=generator).argsort(dim=1)
        keys = order[:, : self.entries]  # each key occurs once in a table
        values = torch.randint(self.values, keys.shape, generator=generator)
        places = torch.rand(keys.shape, generator=generator).argsort(dim=1)[:, : self.slots]
        return keys.gather(1, places), torch.stack([keys, values], -1), values.gather(1, places)


class LookupModel(nn.Module):
    """Embeddings, one multi-head attention, a readout of ``hidden`` units: as large for any h."""

    def __init__(self, task: Lookups, num_heads: int, d_model: int, hidden: int = 0):
        super().__init__()
        self.task = task
        # Each slot has its own vectors: "key 5 in slot 2" is another question than "in slot 1".
        self.asked = nn.Embedding(task.slots * task.keys, d_model)
        self.key, self.value = (nn.Embedding(n, d_model) for n in (task.keys, task.values))
        self.attention = MultiHeadAttention(d_model, num_heads)
        outputs = task.slots * task.values
        self.answer: nn.Module = nn.Linear(d_model, outputs)
        if hidden:
            self.answer = nn.Sequential(
                nn.Linear(d_model, hidden), nn.ReLU(), nn.Linear(hidden, outputs)
            )

    def forward(
        self, asked: Int[Tensor, "B slots"], table: Int[Tensor, "B entries 2"]
    ) -> Float[Tensor, "B slots values"]:
        """Return the logits of each slot's value."""
        asked = asked + torch.arange(self.task.slots) * self.task.keys
        query = self.asked(asked).sum(dim=1, keepdim=True)  # one vector for all slots
        entries = self.key(table[..., 0]) + self.value(table[..., 1])
        read = self.attention(query, entries)
        return self.answer(read).unflatten(-1, (self.task.slots, -1)).squeeze(1)


def train_lookups(model: LookupModel, steps: int, batch_size: int, seed: int, rate: float) -> None:
    """Train a model in place on fresh tables; the learning rate decays linearly to zero."""

    def loss(step: int) -> Tensor:
        asked, table, right = model.task.batch(batch_size, seed * 1_000_000 + step)
        return nn.functional.cross_entropy(model(asked, table).flatten(0, 1), right.flatten())

    optimise(model, loss, steps, lambda step: rate * (1 - (step - 1) / steps))
    model.eval()


@torch.no_grad()
def right_answers(
    model: LookupModel, size: int = 2000, seed: int = 10**12
) -> Float[Tensor, " slots"]:
    """Return the share of right answers for each slot, over ``size`` new tables."""
    asked, table, right = model.task.batch(size, seed)
    return (model(asked, table).argmax(dim=-1) == right).float().mean(dim=0)
