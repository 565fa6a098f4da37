"""Words with two senses, read from the German: does a head tell them apart, or serve one?"""

import re
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
import yaml
from jaxtyping import Bool, Float, Int

from transformer.inference.batches import pad
from transformer.inference.translator import Translator
from transformer.model.base import evaluation_mode
from transformer.model.transformer import Transformer
from transformer.recording import record_attention
from transformer_book.studies.simple_translators import words_of
from transformer_book.studies.what_heads_learn.ablation import Head, edited, heads_of, silent
from transformer_book.studies.what_heads_learn.attention_alignment import token_words

#: English words with two senses, and the German words that show each.
SENSES: dict[str, dict[str, str]] = yaml.safe_load(
    Path(__file__).with_suffix(".yml").read_text(encoding="utf-8")
)
LEAST, MOST = 10, 40  # sentences per sense
NEAR = 3  # tokens to each side of the word in the description of its attention


class Example(NamedTuple):
    """A pair with an ambiguous word; ``place`` is that of the German word that shows its sense."""

    source: str
    target: str
    sense: int
    place: int


def examples(word: str, pairs: Iterable[tuple[str, str]], most: int = MOST) -> list[Example]:
    """Find pairs with the word once and one word of one sense; at most ``most`` per sense."""
    german = [set(words.split()) for words in SENSES[word].values()]
    alone, found, count = re.compile(rf"(?<!\w){word}(?!\w)"), [], [0] * len(german)
    for source, target in dict.fromkeys(pairs):
        if len(alone.findall(source.lower())) != 1:
            continue
        words = words_of(target)
        hits = [(s, j) for j, w in enumerate(words) for s, some in enumerate(german) if w in some]
        if len(hits) == 1 and count[hits[0][0]] < most:
            count[hits[0][0]] += 1
            found.append(Example(source, target, *hits[0]))
    return sorted(found, key=lambda example: len(example.source))  # little padding in batches


def told_apart(
    features: Float[np.ndarray, "n heads size"], labels: Bool[np.ndarray, "*samples n"]
) -> Float[np.ndarray, "*samples heads"]:
    """Return how often the nearer of two means, without the example itself, has its label."""
    n, heads, _ = features.shape
    scaled = features - features.mean(axis=0)
    scaled = scaled / (scaled.std(axis=0) + 1e-9)
    one = np.atleast_2d(labels).astype(float)  # (P, n)
    rates = np.empty((len(one), heads))
    for head in range(heads):
        dot = scaled[:, head] @ scaled[:, head].T
        square, far = np.diag(dot), []
        for mine in (1 - one, one):
            count, total = mine.sum(axis=1, keepdims=True), mine @ dot
            inside = (total * mine).sum(axis=1, keepdims=True)
            left = count - mine  # without the example itself
            total_left = total - mine * square
            inside_left = inside - mine * (2 * total - square)
            far.append(inside_left / left**2 - 2 * total_left / left)
        right = np.where(one > 0, far[1] < far[0], far[0] < far[1])
        hits = [(right * m).sum(axis=1) / m.sum(axis=1) for m in (one, 1 - one)]
        rates[:, head] = np.mean(hits, axis=0)
    return rates.reshape(*np.shape(labels)[:-1], heads)


def shuffles(labels: Bool[np.ndarray, " n"], samples: int, seed: int = 0) -> np.ndarray:
    """Return shuffled copies of labels, (samples, n)."""
    random = np.random.default_rng(seed)
    return np.stack([random.permutation(labels) for _ in range(samples)])


@torch.inference_mode()
def at_the_word(
    translator: Translator, word: str, found: Sequence[Example]
) -> tuple[Float[np.ndarray, "n heads d_v"], Float[np.ndarray, "n heads places"]]:
    """Return what each head of the encoder writes at the word, and where it attends from there."""
    model = translator.model
    assert isinstance(model, Transformer)
    outputs, attention = [], []
    merged: list[torch.Tensor] = []
    handles = [
        layer.self_attention.output_projection.register_forward_pre_hook(
            lambda _, given: merged.append(given[0][0])
        )
        for layer in model.encoder
    ]
    try:
        for example in found:
            words = token_words(translator.tokenizer, example.source)
            ids = translator.tokenizer.encode(example.source)
            place = words.index(words_of(example.source).index(word))
            merged.clear()
            with evaluation_mode(model), record_attention(model) as recorded:
                model.encode(torch.tensor([[*ids, translator.tokenizer.eos_id]]))
            maps = torch.stack(recorded.encoder)[:, 0, :, place].flatten(0, 1)  # (heads, S)
            written = torch.stack(merged)[:, place].reshape(len(maps), -1)
            around = torch.zeros(len(maps), 2 * NEAR + 2)
            for step in range(-NEAR, NEAR + 1):
                if 0 <= place + step < len(ids):
                    around[:, step + NEAR] = maps[:, place + step]
            around[:, -1] = maps[:, -1]
            outputs.append(written.numpy())
            attention.append(around.numpy())
    finally:
        for handle in handles:
            handle.remove()
    return np.stack(outputs), np.stack(attention)


@torch.inference_mode()
def word_losses(
    translator: Translator,
    found: Sequence[Example],
    heads: Collection[Head | None] | None = None,
    batch_size: int = 64,
) -> Float[np.ndarray, "n heads"]:
    """Return the loss of the German word in nats, with each head silenced; None silences none."""
    model = translator.model
    assert isinstance(model, Transformer)
    silenced = list(heads) if heads is not None else [None, *heads_of(model.config)]
    losses = np.zeros((len(found), len(silenced)))
    for start in range(0, len(found), batch_size):
        some = found[start : start + batch_size]
        sources = [translator.tokenizer.encode(e.source) for e in some]
        targets = [translator.target_tokenizer.encode(e.target) for e in some]
        eos, bos = model.config.eos_id, model.config.bos_id
        source = pad(model, [[*ids, eos] for ids in sources])
        target = pad(model, [[bos, *ids] for ids in targets])
        labels = pad(model, [[*ids, eos] for ids in targets])
        here = torch.zeros(labels.shape, dtype=torch.bool)
        for row, example in enumerate(some):
            for j, w in enumerate(token_words(translator.target_tokenizer, example.target)):
                here[row, j] = w == example.place
        with evaluation_mode(model):
            whole = model.encode(source)
        for column, head in enumerate(silenced):
            with edited(model, {} if head is None else {head: silent}):
                inside = head is not None and head.kind == "encoder"
                memory = model.encode(source) if inside else whole
                states = model.decoder_states(target, memory, source)
            each = F.cross_entropy(
                F.linear(states[here], model.output_weight), labels[here], reduction="none"
            )
            loss = torch.zeros(labels.shape)
            loss[here] = each
            losses[start : start + len(some), column] = loss.sum(dim=1).numpy()
    return losses


def selective(
    added: Float[np.ndarray, "n heads"], labels: Bool[np.ndarray, "*samples n"]
) -> Float[np.ndarray, "*samples heads"]:
    """Return Welch's t of the added loss between two senses, for one or several labellings."""
    one = np.atleast_2d(labels).astype(float)
    parts: list[tuple[np.ndarray, Int[np.ndarray, "samples 1"], np.ndarray]] = []
    for mine in (one, 1 - one):
        count = mine.sum(axis=1, keepdims=True)
        mean = mine @ added / count
        spread = (mine @ added**2 / count - mean**2) * count / (count - 1)
        parts.append((mean, count, spread))
    (a, n, s), (b, m, r) = parts
    t = (a - b) / np.sqrt(np.maximum(s / n + r / m, 1e-12))
    return t.reshape(*np.shape(labels)[:-1], added.shape[1])
