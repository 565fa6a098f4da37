"""Artificial reviews whose sentiment depends on the order of the words.

A review is one clause, or two clauses with "but" between them, of which the second decides. A
clause says that something is good, not good, or anything but good. "Not good but cheap" and "cheap
but not good" contain the same words, so word counts cannot distinguish them.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

#: What a review can be about.
THINGS = (
    "plot", "acting", "music", "ending", "story", "cast", "script", "dialogue", "camera", "pace",
    "humour", "lighting",
)  # fmt: skip
#: Words of praise.
GOOD = (
    "good", "great", "funny", "clever", "brilliant", "moving", "fresh", "warm", "sharp", "lovely",
    "gripping", "charming",
)  # fmt: skip
#: Words of blame.
BAD = (
    "bad", "dull", "boring", "weak", "awful", "silly", "stale", "cold", "clumsy", "ugly", "tedious",
    "bland",
)  # fmt: skip
#: Modifiers of an adjective, and whether they negate it.
TURNS = (("", 1), ("very", 1), ("really", 1), ("not", -1), ("never", -1), ("anything but", -1))
#: The kinds of review, from easy to hard, and the share of each.
KINDS = {"plain": 0.5, "negated": 0.2, "contrast": 0.2, "contrast, negated": 0.1}


@dataclass(frozen=True)
class Review:
    """A text of lower-cased words, its sentiment, and its kind among ``KINDS``."""

    text: str
    positive: bool
    kind: str


def make_reviews(count: int, seed: int, without: Collection[str] = ()) -> list[Review]:
    """Draw reviews other than ``without``, half of them positive in expectation.

    The short kinds have few different texts, which may be drawn more than once.
    """
    random, known = np.random.default_rng(seed), set(without)
    names = list(KINDS)
    found: list[Review] = []
    while len(found) < count:
        review = _review(random, names[random.choice(len(names), p=list(KINDS.values()))])
        if review.text not in known:
            found.append(review)
    return found


def _review(random: np.random.Generator, kind: str) -> Review:
    turned = kind.endswith("negated")
    verdict = bool(random.integers(2))
    if not kind.startswith("contrast"):
        return Review(_clause(random, verdict, turned), verdict, kind)
    # One random clause of the two is negated.
    which = int(random.integers(2))
    first = _clause(random, not verdict, turned and which == 0)
    second = _clause(random, verdict, turned and which == 1)
    return Review(f"{first} but {second}", verdict, kind)


def _clause(random: np.random.Generator, positive: bool, turned: bool) -> str:
    turns = [(word, sign) for word, sign in TURNS if (sign < 0) == turned]
    before, sign = turns[random.integers(len(turns))]
    words = GOOD if positive == (sign > 0) else BAD
    thing, word = THINGS[random.integers(len(THINGS))], words[random.integers(len(words))]
    return " ".join(f"the {thing} is {before} {word}".split())


class WordIds:
    """A vocabulary of the words of some texts; ids 0 to 3 are padding, BOS, EOS and unknown."""

    def __init__(self, texts: Sequence[str]):
        counts = Counter(word for text in texts for word in text.split())
        self.words = ["<pad>", "<bos>", "<eos>", "<unk>", *sorted(counts)]
        self._ids = {word: i for i, word in enumerate(self.words)}

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, text: str) -> list[int]:
        """Return the ids of the words of a text."""
        return [self._ids.get(word, 3) for word in text.split()]

    def decode(self, ids: Sequence[int]) -> str:
        """Return the words of some ids, without padding, BOS and EOS."""
        return " ".join(self.words[i] for i in ids if i > 2)


class BagOfWords(nn.Module):
    """Logistic regression on the words of a text, or on its words and word pairs.

    Args:
        runs: 1 for words, 2 for words and pairs of neighbours.
    """

    def __init__(self, vocab_size: int, runs: int = 1):
        super().__init__()
        self.vocab_size, self.runs = vocab_size, runs
        size = vocab_size if runs == 1 else vocab_size + vocab_size**2
        self.weights = nn.EmbeddingBag(size, 1, mode="sum", padding_idx=0)
        self.bias = nn.Parameter(torch.zeros(1))
        nn.init.zeros_(self.weights.weight)

    def forward(self, ids: Int[Tensor, "B S"]) -> Float[Tensor, "B 1"]:
        """Sum the weights of the words and pairs of ids padded with 0."""
        if self.runs == 2 and ids.size(1) > 1:
            first, second = ids[:, :-1], ids[:, 1:]
            pairs = self.vocab_size + first * self.vocab_size + second
            ids = torch.cat([ids, torch.where(second == 0, 0, pairs)], dim=1)
        return self.weights(ids) + self.bias
