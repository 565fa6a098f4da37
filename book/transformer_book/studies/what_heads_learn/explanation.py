"""Attention as an explanation of predictions, compared with the effect of removing tokens."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer.inference.sentences import encode_sentences
from transformer.inference.translator import Translator
from transformer.model.base import evaluation_mode
from transformer.model.transformer import Transformer
from transformer_book.statistics import spearman
from transformer_book.studies.what_heads_learn.ablation import Head

#: Remove the token itself, so that the encoder never sees it, or only its vector in the encoder's
#: output, to which cross-attention attends.
Removed = Literal["token", "vector"]


@torch.inference_mode()
def removal_effects(
    model: Transformer,
    source: Int[Tensor, "1 S"],
    target: Int[Tensor, "1 T"],
    removed: Removed = "token",
) -> Float[Tensor, "T S"]:
    """Remove each source position in turn, and measure how far each prediction moves."""
    size = source.size(1)
    # No query may attend to a padded position; the others keep their places.
    gaps = torch.eye(size, dtype=torch.bool)
    without = source.expand(size, size).masked_fill(gaps, model.config.pad_id)
    with evaluation_mode(model):
        memory = model.encode(source)
        whole = model.decode(target, memory, source).softmax(dim=-1)
        memory = model.encode(without) if removed == "token" else memory.expand(size, -1, -1)
        changed = model.decode(target.expand(size, -1), memory, without).softmax(dim=-1)
    return ((changed - whole).abs().sum(dim=-1) / 2).T


def mean_agreement(
    one: Sequence[Float[np.ndarray, "_ _"]], other: Sequence[Float[np.ndarray, "_ _"]]
) -> Float[np.ndarray, " sentences"]:
    """Correlate two rankings of the source tokens, prediction by prediction."""
    pairs = zip(one, other, strict=True)
    return np.array(
        [np.nanmean([spearman(x, y) for x, y in zip(a, b, strict=True)]) for a, b in pairs]
    )


def explanation(translator: Translator, pairs: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Correlate weights, and the place in the sentence, with the effect of removing a token."""
    model, tokenizer = translator.model, translator.tokenizer
    assert isinstance(model, Transformer)
    views: dict[str, list[np.ndarray]] = {}
    effects: dict[Removed, list[np.ndarray]] = {"token": [], "vector": []}
    for english, other in pairs:
        ids, out = (
            [*row, model.config.eos_id]
            for row in encode_sentences([english, other], ["english", "other"], tokenizer)
        )
        source, target = torch.tensor([ids]), torch.tensor([[model.config.bos_id, *out[:-1]]])
        for removed, found in effects.items():
            found.append(removal_effects(model, source, target, removed).numpy())
        with torch.inference_mode():
            maps = torch.cat(model.attention_weights(source, target).cross).numpy()
        layers, heads, T, S = maps.shape
        now = {str(Head("cross", *at)): maps[at] for at in np.ndindex(layers, heads)}
        now["all heads"] = maps.mean(axis=(0, 1))
        now["place"] = -np.abs(np.subtract.outer(np.arange(T) / T, np.arange(S) / S))
        for name, view in now.items():
            views.setdefault(name, []).append(view)
    return dict(
        sentences=len(pairs),
        predictions=sum(len(effect) for effect in effects["token"]),
        agreement={
            name: {what: mean_agreement(view, effect).tolist() for what, effect in effects.items()}
            for name, view in views.items()
        },
    )
