"""Attention between words that belong together, beside other words at the same distance."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int

from transformer.inference.batches import pad
from transformer.inference.significance import interval
from transformer.inference.translator import Translator
from transformer.model.base import evaluation_mode
from transformer.model.transformer import Transformer
from transformer.recording import record_attention
from transformer_book.studies.what_heads_learn.ablation import Head

#: Masculine pronouns as the tokenizer of the shipped model writes them.
HE = ("▁he", "▁his", "▁him", "▁himself")
POSSESSIVES = ("▁my", "▁your", "▁his", "▁her", "▁its", "▁our", "▁their")
MAKE = ("▁make", "▁makes", "▁made", "▁making")
#: What something or someone is made, as in "making the registration more difficult".
MADE = (
    *("▁angry", "▁better", "▁clear", "▁difficult", "▁easier", "▁easy", "▁famous", "▁happy"),
    *("▁hard", "▁harder", "▁hungry", "▁impossible", "▁jealous", "▁mad", "▁nervous", "▁popular"),
    *("▁possible", "▁rich", "▁sad", "▁sick", "▁tired", "▁unhappy", "▁worse"),
)
FARTHEST = 8  # from a form of "make" to the adjective, in tokens
PLACES = 400  # sentences with possessives
SEEDS = (1, 2, 3)  # of untrained models

#: From the tokens of a sentence to pairs of positions: one that attends, one attended to.
Find = Callable[[list[str]], list[tuple[int, int]]]


@dataclass(frozen=True)
class Looks:
    """Attention weights of the encoder's heads from one token to another, many times."""

    weights: Float[np.ndarray, "looks layers H"]
    linked: Bool[np.ndarray, " looks"]  #: whether the two tokens belong together.
    #: looks are compared within a group only, for example at the same distance.
    group: Int[np.ndarray, " looks"]
    sentence: Int[np.ndarray, " looks"]

    def excess(self) -> Float[np.ndarray, "layers H"]:
        """Return the mean weight between linked tokens minus that of others in the same group."""
        return self._excess(self.linked, np.ones(len(self.linked)))

    def excess_draws(self, samples: int = 200, seed: int = 0) -> np.ndarray:
        """Return bootstrap samples of :meth:`excess` over sentences."""
        random, n = np.random.default_rng(seed), int(self.sentence.max()) + 1
        times = random.multinomial(n, np.full(n, 1 / n), size=samples)
        return np.stack([self._excess(self.linked, row[self.sentence]) for row in times])

    def chance(self, samples: int = 500, seed: int = 0) -> Float[np.ndarray, " samples"]:
        """Return the largest size of any head's excess when links are shuffled within groups."""
        random, order = np.random.default_rng(seed), np.argsort(self.group, kind="stable")
        once, found = np.ones(len(self.linked)), []
        for _ in range(samples):
            shuffled = np.empty_like(self.linked)
            mixed = np.lexsort((random.random(len(order)), self.group))
            shuffled[mixed] = self.linked[order]
            found.append(np.abs(self._excess(shuffled, once)).max())
        return np.array(found)

    def _excess(self, linked: np.ndarray, times: np.ndarray) -> np.ndarray:
        flat = self.weights.reshape(len(self.weights), -1)
        groups, place = np.unique(self.group, return_inverse=True)

        def sums(some: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            many = np.zeros((len(groups), flat.shape[1]))
            np.add.at(many, place[some], flat[some] * times[some, None])
            return many, np.bincount(place[some], times[some], len(groups))[:, None]

        (ours, count), (others, rest) = sums(linked), sums(~linked)
        both = (count[:, 0] > 0) & (rest[:, 0] > 0)
        if not both.any():
            return np.full(self.weights.shape[1:], np.nan)
        gap = ours[both] - count[both] * others[both] / rest[both]
        return (gap.sum(axis=0) / count[both].sum()).reshape(self.weights.shape[1:])


def looks_at_name(translator: Translator, sentences: Sequence[str], name: str = "Tom") -> Looks:
    """Collect the weights to a name at the start by distance; pronouns are linked to it."""

    def find(labels: list[str]) -> list[tuple[int, int]]:
        return [(i, 0) for i, word in enumerate(labels) if labels[0] == name and word in HE]

    def others(labels: list[str], link: tuple[int, int]) -> list[tuple[int, int]]:
        return [(i, 0) for i in range(1, len(labels))]

    kept = [sentence for sentence in sentences if sentence.startswith(name)]
    return _collect(translator, kept, find, others, across=True)


def looks_between(translator: Translator, sentences: Sequence[str], find: Find) -> Looks:
    """Collect the weights between linked tokens, and between others as far apart."""

    def others(labels: list[str], link: tuple[int, int]) -> list[tuple[int, int]]:
        apart = link[1] - link[0]
        return [(i, i + apart) for i in range(len(labels)) if 0 <= i + apart < len(labels)]

    return _collect(translator, sentences, find, others)


def from_make(labels: list[str]) -> list[tuple[int, int]]:
    """Link each form of "make" to the first adjective after it, if one is near."""
    found = []
    for i, word in enumerate(labels):
        near = [j for j in range(i + 2, min(i + FARTHEST + 1, len(labels))) if labels[j] in MADE]
        if word in MAKE and near:
            found.append((i, near[0]))
    return found


def from_possessive(labels: list[str]) -> list[tuple[int, int]]:
    """Link each possessive to the token after it."""
    return [(i, i + 1) for i, word in enumerate(labels[:-1]) if word in POSSESSIVES]


@torch.inference_mode()
def _collect(
    translator: Translator,
    sentences: Sequence[str],
    find: Find,
    others: Callable[[list[str], tuple[int, int]], list[tuple[int, int]]],
    across: bool = False,
    batch_size: int = 64,
) -> Looks:
    """Collect linked pairs and those to compare them with, in one sentence or ``across`` all."""
    tokenizer, model = translator.tokenizer, translator.model
    assert isinstance(model, Transformer)
    rows = [tokenizer.encode(sentence) for sentence in sentences]
    links = [find(tokenizer.tokens(row)) for row in rows]
    kept = sorted((i for i, found in enumerate(links) if found), key=lambda i: len(rows[i]))
    if not kept:
        raise ValueError("no sentence has tokens that are linked")
    weights: list[np.ndarray] = []
    looks: list[tuple[bool, tuple[int, ...], int]] = []
    for start in range(0, len(kept), batch_size):
        some = kept[start : start + batch_size]
        source = pad(model, [[*rows[i], tokenizer.eos_id] for i in some])
        with evaluation_mode(model), record_attention(model) as recorded:
            model.encode(source)
        stacked = torch.stack(recorded.encoder, dim=1).numpy()  # (B, layers, H, S, S)
        for b, i in enumerate(some):
            labels = tokenizer.tokens(rows[i])
            for number, link in enumerate(links[i]):
                for q, k in others(labels, link):
                    if across and number:  # the comparison has all words of the sentence already
                        break
                    group = (k - q,) if across else (start + b, number)
                    right = (q, k) in links[i] if across else (q, k) == link
                    weights.append(stacked[b, :, :, q, k])
                    looks.append((right, group, start + b))
    linked, group, sentence = zip(*looks, strict=True)
    numbers = np.unique(np.array(group), axis=0, return_inverse=True)[1].ravel()
    return Looks(np.stack(weights), np.array(linked), numbers, np.array(sentence))


def untrained(translator: Translator, seed: int) -> Translator:
    """Return a translator of the same shape with random parameters."""
    assert isinstance(translator.model, Transformer)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = Transformer(translator.model.config)
    return Translator(model, translator.tokenizer)


def all_looks(
    translator: Translator, sentences: Sequence[str], shuffles: int = 1000
) -> dict[str, dict[str, Any]]:
    """Ask the questions of Figures 3 and 4 of this model and of untrained ones."""
    tokens = translator.tokenizer
    owned = [s for s in sentences if from_possessive(tokens.tokens(tokens.encode(s)))][:PLACES]
    asked: dict[str, Callable[[Translator], Looks]] = {
        "make to adjective": partial(looks_between, sentences=sentences, find=from_make),
        "possessive to next": partial(
            looks_between, sentences=owned[:PLACES], find=from_possessive
        ),
        "he to Tom": partial(looks_at_name, sentences=sentences),
    }
    found = {}
    for name, ask in asked.items():
        one = ask(translator)
        excess, draws = one.excess(), one.excess_draws()
        places = {str(Head("encoder", *at)): at for at in np.ndindex(*excess.shape)}
        found[name] = dict(
            links=int(one.linked.sum()),
            excess={head: float(excess[at]) for head, at in places.items()},
            interval={head: interval(draws[:, *at]) for head, at in places.items()},
            chance=float(np.quantile(one.chance(shuffles), 0.95)),
            untrained=[float(ask(untrained(translator, seed)).excess().max()) for seed in SEEDS],
        )
    return found
