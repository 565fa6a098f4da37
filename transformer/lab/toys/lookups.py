"""A task that needs several look-ups at once, and one layer of attention to solve it.

A table of entries, each a key and a value, lies before the model. A single query names one key for
each of several slots, and the model has to give the value of each. How many slots it can serve
says how many places one position can read at the same time.

Paper: section 3.2.2 (with a single attention head, averaging inhibits this)
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention
from transformer.training.progress import progress


@dataclass(frozen=True)
class Lookups:
    """A task: which values belong to the keys that are asked for?

    Args:
        slots: how many keys a query names, 1 or more; they differ from one another.
        entries: how many entries a table has, at least ``slots``.
        keys: how many different keys there are, at least ``entries``.
        values: how many different values there are.
    """

    slots: int
    entries: int = 12
    keys: int = 24
    values: int = 8

    def batch(
        self, size: int, seed: int
    ) -> tuple[Int[Tensor, "B slots"], Int[Tensor, "B entries 2"], Int[Tensor, "B slots"]]:
        """Draw what is asked, the tables, and the right answers; the same seed draws the same.

        Args:
            size: number of tables B.
            seed: of the draw.

        Returns:
            Keys asked for, tables of (key, value), values to answer.
        """
        generator = torch.Generator().manual_seed(seed)
        order = torch.rand(size, self.keys, generator=generator).argsort(dim=1)
        keys = order[:, : self.entries]  # a key stands in a table once
        values = torch.randint(self.values, keys.shape, generator=generator)
        places = torch.rand(keys.shape, generator=generator).argsort(dim=1)[:, : self.slots]
        return keys.gather(1, places), torch.stack([keys, values], -1), values.gather(1, places)


class LookupModel(nn.Module):
    """Embeddings, one multi-head attention, one linear layer: as many parameters for any h.

    Args:
        task: what to solve.
        num_heads: number of heads h.
        d_model: size of the vectors.
        d_k: size of a head's queries and keys; d_model / num_heads if None.

    Paper: section 3.2.2
    """

    def __init__(self, task: Lookups, num_heads: int, d_model: int = 64, d_k: int | None = None):
        super().__init__()
        self.task = task
        # A slot has its own vectors: "key 5 in slot 2" is another question than "in slot 1".
        self.asked = nn.Embedding(task.slots * task.keys, d_model)
        self.key, self.value = (nn.Embedding(n, d_model) for n in (task.keys, task.values))
        self.attention = MultiHeadAttention(d_model, num_heads, d_k)
        self.answer = nn.Linear(d_model, task.slots * task.values)
        self.offset: Tensor
        self.register_buffer("offset", torch.arange(task.slots) * task.keys)

    def forward(
        self,
        asked: Int[Tensor, "B slots"],
        table: Int[Tensor, "B entries 2"],
        maps: list[Tensor] | None = None,
    ) -> Float[Tensor, "B slots values"]:
        """Return the logits of each slot's value.

        Args:
            asked: the keys to look up, one a slot.
            table: entries of (key, value).
            maps: a list to append the attention weights to, (B, num_heads, 1, entries).

        Paper: section 3.2.2
        """
        query = self.asked(asked + self.offset).sum(dim=1, keepdim=True)  # one vector for all slots
        entries = self.key(table[..., 0]) + self.value(table[..., 1])
        read = self.attention(query, entries, maps=maps)
        return self.answer(read).unflatten(-1, (self.task.slots, -1)).squeeze(1)


def train_lookups(
    model: LookupModel, steps: int = 400, batch_size: int = 128, seed: int = 0, rate: float = 5e-3
) -> None:
    """Train a model in place on fresh tables; the rate falls to zero along a line.

    Args:
        model: the model. Seed its weights before it is made.
        steps: optimiser steps.
        batch_size: tables a step.
        seed: of the tables.
        rate: the first learning rate.
    """
    optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
    for step in progress(range(steps)):
        asked, table, right = model.task.batch(batch_size, seed=seed * 1_000_000 + step)
        for group in optimizer.param_groups:
            group["lr"] = rate * (1 - step / steps)
        loss = nn.functional.cross_entropy(model(asked, table).flatten(0, 1), right.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def lookup_accuracy(model: LookupModel, size: int = 2000, seed: int = 10**12) -> float:
    """Return the share of slots that are answered right, on tables that training did not see.

    Args:
        model: a trained model.
        size: number of tables.
        seed: of the tables.
    """
    asked, table, right = model.task.batch(size, seed)
    return (model(asked, table).argmax(dim=-1) == right).float().mean().item()
