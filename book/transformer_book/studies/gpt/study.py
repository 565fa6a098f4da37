"""A decoder alone that learns German sentences: what it writes after more and more steps."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from transformer import minimal
from transformer.data.corpora import load_corpus
from transformer.data.tokenizer import Tokenizer

RECORD = Path(__file__).with_name("record.json")
SIZES: dict[str, Any] = dict(d_model=128, d_ff=512, heads=4, layers=2)
VOCABULARY = 1000
MILESTONES = (100, 1000, 6000)
HEADING = dict(model=SIZES, vocab_size=VOCABULARY, tokens=2000, warmup=400, factor=0.6)


class GPT(nn.Module):
    """The program's model without its encoder; chapter 27 shows the same lines."""

    def __init__(self, vocab_size: int, d_model: int, d_ff: int, heads: int, layers: int):
        super().__init__()
        self.embedding = minimal.Embedding(vocab_size, d_model)
        self.dropout = nn.Dropout(0.1)
        sizes = d_model, d_ff, heads, 0.1
        self.decoder = minimal.Stack(minimal.EncoderLayer(*sizes) for _ in range(layers))
        for weight in filter(lambda w: w.dim() > 1, self.parameters()):
            nn.init.xavier_uniform_(weight)
        nn.init.normal_(self.embedding.weight, std=d_model**-0.5)

    def forward(self, _: Any, ids: Tensor) -> Tensor:
        """Return logits (B, T, V) of the next token; the first argument is not read."""
        y = self.dropout(self.embedding(ids))
        y = self.decoder(y, minimal.causal_mask(ids.size(1)))
        logits: Tensor = y @ self.embedding.weight.T
        return logits


@torch.no_grad()
def sample(
    model: nn.Module, ids: list[int], temperature: float = 1.0, top_k: int = 1000, most: int = 40
) -> list[int]:
    """Continue a text, token by token, up to <eos>."""
    model.eval()
    for _ in range(most):
        logits = model(None, torch.tensor([ids]))[0, -1] / temperature
        logits[[minimal.PAD, minimal.BOS]] = -torch.inf
        best, tokens = logits.topk(min(top_k, len(logits)))
        ids = [*ids, int(tokens[torch.multinomial(best.softmax(dim=-1), 1)])]
        if ids[-1] == minimal.EOS:
            break
    return ids


def german() -> tuple[Tokenizer, list[list[int]]]:
    """Return a tokenizer of 1,000 pieces, and Tatoeba's German sentences as ids."""
    lines = list(load_corpus("tatoeba-en-de").splits["train"].target)
    tokenizer = Tokenizer.train(lines[:20_000], vocab_size=VOCABULARY)
    return tokenizer, [[*tokenizer.encode(line), minimal.EOS] for line in lines]


def missing(runs: list[dict[str, Any]]) -> Iterator[tuple[dict[str, Any], str]]:
    """Train once, and write ten sentences at each milestone."""
    if runs:
        return
    random.seed(0)
    torch.manual_seed(0)
    tokenizer, rows = german()
    model = GPT(VOCABULARY, **SIZES)
    options: dict[str, Any] = {name: HEADING[name] for name in ("tokens", "warmup", "factor")}
    losses: list[float] = []
    training = minimal.train(model, [(row, row) for row in rows], MILESTONES[-1], **options)
    for loss in training:
        losses.append(loss)
        if len(losses) in MILESTONES:
            torch.manual_seed(1)
            written = {
                name: [
                    tokenizer.decode(sample(model, [minimal.BOS], **how)[1:-1]) for _ in range(5)
                ]
                for name, how in (
                    ("temperature 0.5", dict(temperature=0.5)),
                    ("temperature 1", dict()),
                    ("temperature 1, top 20", dict(top_k=20)),
                )
            }
            found = dict(steps=len(losses), loss=sum(losses[-50:]) / 50, written=written)
            yield found, f"step {len(losses)}: loss {found['loss']:.2f}"
