"""Set a head's attention weights to zero or shuffle them, and measure the loss again."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from transformer.data.batching import Batch
from transformer.inference.significance import bootstrap
from transformer.model.attention import MultiHeadAttention, scaled_dot_product_attention
from transformer.model.base import evaluation_mode
from transformer.model.config import TransformerConfig
from transformer.model.masks import causal_mask
from transformer.model.transformer import Transformer
from transformer.recording import recorders_of

Kind = Literal["encoder", "decoder", "cross"]
KINDS: tuple[Kind, ...] = ("encoder", "decoder", "cross")

#: Takes the weights of one head, (B, T, S), and which keys each query may see; returns others.
Edit = Callable[[Tensor, Tensor], Tensor]


class Head(NamedTuple):
    """One head of a model; layer and index count from 0, the name from 1."""

    kind: Kind
    layer: int
    index: int  # type: ignore[assignment]  # shadows tuple.index

    def __str__(self) -> str:
        return f"{self.kind} {self.layer + 1}.{self.index + 1}"

    @classmethod
    def named(cls, name: str) -> "Head":
        """Return the head of a name such as "cross 3.1"."""
        kind, place = name.split(" ")
        layer, index = (int(number) - 1 for number in place.split("."))
        return cls(KINDS[KINDS.index(kind)], layer, index)


def heads_of(config: TransformerConfig) -> list[Head]:
    """Return all heads of a model: those of the encoder, the decoder, and cross-attention."""
    decoder_layers = config.num_decoder_layers or config.num_layers
    layers = dict(encoder=config.num_layers, decoder=decoder_layers, cross=decoder_layers)
    return [
        Head(kind, layer, index)
        for kind in KINDS
        for layer in range(layers[kind])
        for index in range(config.num_heads)
    ]


def attention_of(model: Transformer, head: Head) -> MultiHeadAttention:
    """Return the attention module of a head."""
    if head.kind == "encoder":
        return model.encoder[head.layer].self_attention
    layer = model.decoder[head.layer]
    return layer.self_attention if head.kind == "decoder" else layer.cross_attention


def silent(
    weights: Float[Tensor, "B T S"], visible: Bool[Tensor, "B T S"]
) -> Float[Tensor, "B T S"]:
    """Set all weights of a head to zero, as if its rows of W^O were zero."""
    return torch.zeros_like(weights)


def shuffled(
    weights: Float[Tensor, "B T S"], visible: Bool[Tensor, "B T S"], seed: int | None = None
) -> Float[Tensor, "B T S"]:
    """Shuffle the weights of each query over its visible keys, which keeps their entropy."""
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    noise = torch.rand(weights.shape, generator=generator).masked_fill(~visible, 2.0)
    places = (~visible).to(torch.uint8).argsort(dim=-1, stable=True)  # the visible ones first
    return torch.zeros_like(weights).scatter(-1, places, weights.gather(-1, noise.argsort(dim=-1)))


@contextmanager
def edited(model: Transformer, edits: Mapping[Head, Edit]) -> Iterator[Transformer]:
    """Edit the attention weights of some heads of a model in this context."""
    by_attention: dict[MultiHeadAttention, dict[int, Edit]] = {}
    for head, edit in edits.items():
        by_attention.setdefault(attention_of(model, head), {})[head.index] = edit
    try:
        for attention, changes in by_attention.items():
            vars(attention)["attend"] = partial(_attend, attention, changes)
        with evaluation_mode(model):
            yield model
    finally:
        for attention in by_attention:
            vars(attention).pop("attend", None)


def _attend(
    attention: MultiHeadAttention,
    changes: Mapping[int, Edit],
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    is_causal: bool = False,
) -> Tensor:
    """MultiHeadAttention.attend, with changes to the weights between softmax and values."""
    if is_causal:
        mask = causal_mask(query.size(-2), query.device)
    _, weights = scaled_dot_product_attention(
        query, key, value, mask, scale=attention.scale, need_weights=True
    )
    everything = torch.ones((), dtype=torch.bool, device=weights.device)
    visible = torch.broadcast_to(everything if mask is None else mask, weights.shape)
    weights = weights.clone()
    for index, change in changes.items():
        weights[:, index] = change(weights[:, index], visible[:, index])
    for record in recorders_of(attention):
        record(weights)
    return (weights @ value).transpose(1, 2).flatten(2)


class PairLosses(NamedTuple):
    """The losses of a model on each pair of some batches, in order."""

    #: negative log-likelihood of the target in nats, including EOS.
    nll: Float[np.ndarray, " pairs"]
    tokens: Int[np.ndarray, " pairs"]

    @property
    def mean(self) -> float:
        """Nats per token over all pairs; its exponential is the perplexity."""
        return float(self.nll.sum() / self.tokens.sum())

    def more_than(
        self,
        other: "PairLosses",
        groups: Sequence[int] | None = None,
        samples: int = 1000,
        seed: int = 0,
    ) -> tuple[float, Float[np.ndarray, " samples"]]:
        """Return the loss per token beyond that of another model, with bootstrap samples."""
        if not np.array_equal(self.tokens, other.tokens):
            raise ValueError("both must be losses on the same pairs in the same order")
        sums = np.stack([self.nll - other.nll, self.tokens], axis=1)
        draws = bootstrap(sums, samples, seed, groups, score=_per_token)
        return float(_per_token(sums.sum(axis=0))), draws


def _per_token(sums: np.ndarray) -> np.ndarray:
    return np.asarray(sums[..., 0] / sums[..., 1])


@torch.inference_mode()
def pair_losses(
    model: Transformer,
    batches: Sequence[Batch],
    edits: Mapping[Head, Edit] | None = None,
    memories: Sequence[Tensor] | None = None,
) -> PairLosses:
    """Measure the loss of a model on each pair, with or without edited heads."""
    edits = edits or {}
    if memories is not None and any(head.kind == "encoder" for head in edits):
        raise ValueError("memories do not hold once a head of the encoder is changed")
    pad = model.config.pad_id
    nll, tokens = [], []
    with edited(model, edits):
        for i, batch in enumerate(batches):
            memory = model.encode(batch.source) if memories is None else memories[i]
            states = model.decoder_states(batch.target_input, memory, batch.source)
            real = batch.labels != pad  # no logits where there is nothing to predict
            logits = F.linear(states[real], model.output_weight)
            loss = torch.zeros(real.shape)
            loss[real] = F.cross_entropy(logits, batch.labels[real], reduction="none")
            nll.append(loss.sum(dim=1))
            tokens.append(real.sum(dim=1))
    return PairLosses(torch.cat(nll).double().numpy(), torch.cat(tokens).numpy())


@torch.inference_mode()
def encode_all(model: Transformer, batches: Sequence[Batch]) -> list[Tensor]:
    """Return the encoder's output for each batch, for :func:`pair_losses`."""
    with evaluation_mode(model):
        return [model.encode(batch.source) for batch in batches]
