"""Fine-tuning of a translator on a form of address, *du* or *Sie*, and its effect on others."""

import copy
import re
from collections.abc import Sequence
from itertools import islice
from typing import Literal

import torch

from transformer.data.parallel import Split
from transformer.inference.translator import Translator
from transformer.model.transformer import Transformer
from transformer.training.loss import TranslationLoss
from transformer_book.studies.other_tasks.encoder_model import pad_rows, train_by_rows
from transformer_book.studies.properties import shift_right

Address = Literal["formal", "familiar", "none"]

_YOU = re.compile(r"\b(you|your|yours|yourself|yourselves|you're|you've|you'll|you'd)\b", re.I)
_OTHERS = re.compile(r"\b(she|her|hers|they|them|their|it|its)\b", re.I)
_FORMAL = re.compile(r"\b(Sie|Ihnen|Ihr|Ihre|Ihren|Ihrem|Ihrer|Ihres)\b")
_FAMILIAR = re.compile(r"\b(du|dich|dir|dein\w*|euch|euer|eure\w*)\b", re.I)


def address_of(english: str, german: str) -> Address:
    """Return how a German sentence addresses the *you* of its English source, if that is clear."""
    if not _YOU.search(english):
        return "none"
    later = re.sub(r'(^|[.!?]\s+)["„]?\w+', r"\1", german)
    formal = bool(_FORMAL.search(german if not _OTHERS.search(english) else later))
    familiar = bool(_FAMILIAR.search(german))
    if formal == familiar:
        return "none"
    return "formal" if formal else "familiar"


def pairs_with(split: Split, address: Address, count: int | None = None) -> Split:
    """Return the first ``count`` pairs of English and German with one form of address."""
    kept = list(islice((pair for pair in split if address_of(*pair) == address), count))
    return Split([source for source, _ in kept], [target for _, target in kept])


def address_shares(english: Sequence[str], german: Sequence[str]) -> dict[Address, float]:
    """Return the share of each form of address among translations."""
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
    """Fine-tune a copy of a translator."""
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
        return objective(source, shift_right(labels, bos), labels)[0] / (labels != pad).sum()

    train_by_rows(model, loss, len(pairs), steps, batch_size, rate, warmup_steps=5, seed=seed)
    return Translator(model, tokenizers[0], target_tokenizer=tokenizers[1])
