"""Going on with a trained translator on text of one kind, and what that does to all other text.

The kind here is politeness. English *you* is *du* or *ihr* among friends and *Sie* to strangers in
German; the short sentences of Tatoeba have both. Whoever writes to customers wants one of them.
"""

import copy
import re
from collections.abc import Sequence
from itertools import islice
from typing import Literal

import torch

from transformer.data.parallel import Split
from transformer.inference.translator import Translator
from transformer.lab.beyond.encoder_model import pad_rows, train_by_rows
from transformer.model.transformer import Transformer
from transformer.training.loss import TranslationLoss

Address = Literal["formal", "familiar", "none"]

_YOU = re.compile(r"\b(you|your|yours|yourself|yourselves|you're|you've|you'll|you'd)\b", re.I)
_OTHERS = re.compile(r"\b(she|her|hers|they|them|their|it|its)\b", re.I)
_FORMAL = re.compile(r"\b(Sie|Ihnen|Ihr|Ihre|Ihren|Ihrem|Ihrer|Ihres)\b")
_FAMILIAR = re.compile(r"\b(du|dich|dir|dein\w*|euch|euer|eure\w*)\b", re.I)


def address_of(english: str, german: str) -> Address:
    """Say how a German sentence addresses the *you* of its English one.

    A capital *Sie* that begins a sentence may be *she* or *they*: it counts only where the English
    has none of these. A plural *ihr* that stands alone is not recognised, as it may be *her*.

    Args:
        english: the source.
        german: a translation of it.

    Returns:
        "none" where the English has no *you*, or the German shows neither form, or both.
    """
    if not _YOU.search(english):
        return "none"
    later = re.sub(r'(^|[.!?]\s+)["„]?\w+', r"\1", german)
    formal = bool(_FORMAL.search(german if not _OTHERS.search(english) else later))
    familiar = bool(_FAMILIAR.search(german))
    if formal == familiar:
        return "none"
    return "formal" if formal else "familiar"


def pairs_with(split: Split, address: Address, count: int | None = None) -> Split:
    """Keep the pairs of one form of address.

    Args:
        split: pairs of English and German.
        address: the form.
        count: how many at most, the first ones.
    """
    kept = list(islice((pair for pair in split if address_of(*pair) == address), count))
    return Split([source for source, _ in kept], [target for _, target in kept])


def address_shares(english: Sequence[str], german: Sequence[str]) -> dict[Address, float]:
    """Share of each form of address among translations.

    Args:
        english: sources, at least one.
        german: a translation of each.
    """
    found = [address_of(*pair) for pair in zip(english, german, strict=True)]
    return {form: found.count(form) / len(found) for form in ("formal", "familiar", "none")}


def fine_tune(
    translator: Translator,
    pairs: Split,
    steps: int,
    batch_size: int = 32,
    rate: int | float = 2e-4,
    epsilon: int | float = 0.1,
    seed: int = 0,
) -> Translator:
    """Train a copy of a translator further, on pairs of one kind.

    Any translator will do, one that :func:`transformer.interop.marian.from_marian` loaded included.

    Args:
        translator: is not changed.
        pairs: to train on, at least ``batch_size``.
        steps: optimiser steps.
        batch_size: pairs a step.
        rate: the highest learning rate; see
            :func:`~transformer.lab.beyond.encoder_model.train_by_rows`.
        epsilon: label smoothing.
        seed: of the order of the pairs and of dropout.

    Returns:
        A translator with weights of its own.

    Paper: section 5 (the same loss and optimiser, from weights that are not random)
    """
    model = copy.deepcopy(translator.model)
    assert isinstance(model, Transformer)
    tokenizers = translator.tokenizer, translator.target_tokenizer
    sides = [
        [[*ids, tokenizer.eos_id] for ids in tokenizer.encode_batch(text)]
        for tokenizer, text in zip(tokenizers, (pairs.source, pairs.target), strict=True)
    ]
    objective, pad, bos = TranslationLoss(model, epsilon), model.config.pad_id, model.config.bos_id

    def loss(rows: torch.Tensor) -> torch.Tensor:
        source, labels = (pad_rows([side[i] for i in rows.tolist()], pad) for side in sides)
        shifted = torch.cat([torch.full_like(labels[:, :1], bos), labels[:, :-1]], dim=1)
        return objective(source, shifted, labels)[0] / (labels != pad).sum()

    train_by_rows(model, loss, len(pairs), steps, batch_size, rate, warmup_steps=5, seed=seed)
    return Translator(model, tokenizers[0], target_tokenizer=tokenizers[1])
