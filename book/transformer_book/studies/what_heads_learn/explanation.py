"""Attention as an explanation of predictions, compared with the effect of removing tokens."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from transformer.model.base import evaluation_mode
from transformer.model.transformer import Transformer
from transformer_book.statistics import spearman

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


def gradient_norms(
    model: Transformer,
    source: Int[Tensor, "1 S"],
    target: Int[Tensor, "1 T"],
    labels: Int[Tensor, "1 T"],
) -> Float[Tensor, "T S"]:
    """Return the gradient norm of each label's log-probability for each source embedding."""
    embedded: list[Tensor] = []

    def watch(module: torch.nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        embedded.append(output.detach().requires_grad_())  # the source comes first
        return embedded[-1]

    rows = target.size(1)  # with one copy of the source per prediction, one backward pass is enough
    handle = model.embedding.register_forward_hook(watch)
    try:
        with evaluation_mode(model), torch.enable_grad():
            copies = source.expand(rows, -1)
            memory = model.encode(copies)
            logits = model.decode(target.expand(rows, -1), memory, copies)
            own = logits[torch.arange(rows), torch.arange(rows)].log_softmax(dim=-1)
            picked = own.gather(1, labels.T).sum()
            (gradient,) = torch.autograd.grad(picked, embedded[0])
    finally:
        handle.remove()
    return gradient.norm(dim=-1)


def mean_agreement(
    one: Sequence[Float[np.ndarray, "_ _"]], other: Sequence[Float[np.ndarray, "_ _"]]
) -> Float[np.ndarray, " sentences"]:
    """Correlate two rankings of the source tokens, prediction by prediction."""
    pairs = zip(one, other, strict=True)
    return np.array(
        [np.nanmean([spearman(x, y) for x, y in zip(a, b, strict=True)]) for a, b in pairs]
    )
