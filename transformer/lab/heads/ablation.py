"""What a head is worth: its weights replaced by something else, and the loss measured again.

A picture shows where a head looks, not whether anything depends on it. So the weights of a head are
set to zero, or spread evenly, or handed out to the wrong keys, and everything behind it is computed
anew.
"""

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
from transformer.inference.stepwise import evaluation_mode
from transformer.model.attention import MultiHeadAttention, scaled_dot_product_attention
from transformer.model.config import TransformerConfig
from transformer.model.packing import UNPACKED, Packing
from transformer.model.transformer import Transformer

Kind = Literal["encoder", "decoder", "cross"]
KINDS: tuple[Kind, ...] = ("encoder", "decoder", "cross")

#: Takes the weights of one head, (B, T, S), and which keys each query may see; returns others.
Edit = Callable[[Tensor, Tensor], Tensor]


class Head(NamedTuple):
    """One head of a model; layer and index count from 0, the name from 1.

    Args:
        kind: "encoder" and "decoder" for self-attention, "cross" for encoder-decoder attention.
        layer: of its stack.
        index: of its layer.

    Paper: section 3.2.3
    """

    kind: Kind
    layer: int
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody asks of a head

    def __str__(self) -> str:
        return f"{self.kind} {self.layer + 1}.{self.index + 1}"

    @classmethod
    def named(cls, name: str) -> "Head":
        """The head of a name such as "cross 3.1".

        Raises:
            ValueError: if it is no such name.
        """
        try:
            kind, place = name.split(" ")
            layer, index = (int(number) - 1 for number in place.split("."))
        except ValueError:
            raise ValueError(f"name must be like 'cross 3.1', got {name!r}") from None
        if kind not in KINDS or min(layer, index) < 0:
            raise ValueError(f"name must be like 'cross 3.1', got {name!r}")
        return cls(kind, layer, index)


def heads_of(config: TransformerConfig) -> list[Head]:
    """All heads of a model: those of the encoder, of the decoder, of the cross-attention.

    Paper: section 3.2.3
    """
    decoder_layers = config.num_decoder_layers or config.num_layers
    layers = dict(encoder=config.num_layers, decoder=decoder_layers, cross=decoder_layers)
    return [
        Head(kind, layer, index)
        for kind in KINDS
        for layer in range(layers[kind])
        for index in range(config.num_heads)
    ]


def attention_of(model: Transformer, head: Head) -> MultiHeadAttention:
    """The attention that a head belongs to.

    Raises:
        ValueError: if the model has no such head.

    Paper: section 3.2.3
    """
    if head not in heads_of(model.config):
        raise ValueError(f"the model has no head {head}")
    if head.kind == "encoder":
        return model.encoder[head.layer].self_attention
    layer = model.decoder[head.layer]
    return layer.self_attention if head.kind == "decoder" else layer.cross_attention


def silent(
    weights: Float[Tensor, "B T S"], visible: Bool[Tensor, "B T S"]
) -> Float[Tensor, "B T S"]:
    """Take all weights away: the head adds nothing, as if its rows of W^O were zero.

    Args:
        weights: of one head.
        visible: True where a query may see a key.
    """
    return torch.zeros_like(weights)


def even(weights: Float[Tensor, "B T S"], visible: Bool[Tensor, "B T S"]) -> Float[Tensor, "B T S"]:
    """Look at all visible keys alike: the head still adds something, but does not choose.

    Args:
        weights: of one head.
        visible: True where a query may see a key.
    """
    share = visible.to(weights.dtype)
    return share / share.sum(dim=-1, keepdim=True).clamp(min=1)


def shuffled(
    weights: Float[Tensor, "B T S"],
    visible: Bool[Tensor, "B T S"],
    seed: int | None = None,
) -> Float[Tensor, "B T S"]:
    """Hand the weights of each query out to its visible keys in random order.

    The head stays as sure as it was, of something else.

    Args:
        weights: of one head.
        visible: True where a query may see a key.
        seed: of the order; None for the global generator.
    """
    generator = None if seed is None else torch.Generator().manual_seed(seed)
    noise = torch.rand(weights.shape, generator=generator).masked_fill(~visible, 2.0)
    places = (~visible).to(torch.uint8).argsort(dim=-1, stable=True)  # the visible ones first
    return torch.zeros_like(weights).scatter(-1, places, weights.gather(-1, noise.argsort(dim=-1)))


@contextmanager
def edited(model: Transformer, edits: Mapping[Head, Edit]) -> Iterator[Transformer]:
    """Run a model with other attention weights in some heads; afterwards it is as it was.

    It holds for whole sequences and for one token at a time, so for translating as well.

    Args:
        model: the model; it is switched to evaluation mode meanwhile.
        edits: what to do to the weights of each head.

    Raises:
        ValueError: if the model has no such head.
    """
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
    maps: list[Tensor] | None = None,
    packing: Packing = UNPACKED,
) -> Tensor:
    """MultiHeadAttention.attend, with changes to the weights between softmax and values."""
    _, weights = scaled_dot_product_attention(
        query, key, value, mask, scale=attention.scale, need_weights=True
    )
    everything = torch.ones((), dtype=torch.bool, device=weights.device)
    visible = torch.broadcast_to(everything if mask is None else mask, weights.shape)
    weights = weights.clone()
    for index, change in changes.items():
        weights[:, index] = change(weights[:, index], visible[:, index])
    if maps is not None:
        maps.append(weights)
    return attention.out_projection(packing.pack((weights @ value).transpose(1, 2).flatten(2)))


class PairLosses(NamedTuple):
    """What a model loses on each pair of some batches, in the order of the batches.

    Args:
        nll: negative log-likelihood of the target, in nats, EOS included.
        tokens: number of target tokens, EOS included.

    Paper: section 6.2, Table 3 (perplexity)
    """

    nll: Float[np.ndarray, " pairs"]
    tokens: Int[np.ndarray, " pairs"]

    @property
    def mean(self) -> float:
        """Nats a token over all pairs; its exponential is the perplexity.

        Paper: section 6.2, Table 3
        """
        return float(self.nll.sum() / self.tokens.sum())

    def more_than(
        self, other: "PairLosses", samples: int = 1000, seed: int = 0
    ) -> tuple[float, Float[np.ndarray, " samples"]]:
        """How many nats a token this loses more than another on the same pairs, and how sure.

        Args:
            other: losses on the same pairs in the same order.
            samples: how many test sets to draw from the pairs, with replacement.
            seed: of the draws; with the same seed the same pairs are drawn.

        Returns:
            The difference, and that of each drawn test set.

        Raises:
            ValueError: if the pairs differ in number or length.
        """
        if not np.array_equal(self.tokens, other.tokens):
            raise ValueError("both must be losses on the same pairs in the same order")
        n, change = len(self.tokens), self.nll - other.nll
        times = np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=samples)
        return float(change.sum() / self.tokens.sum()), (times @ change) / (times @ self.tokens)


@torch.inference_mode()
def pair_losses(
    model: Transformer,
    batches: Sequence[Batch],
    edits: Mapping[Head, Edit] | None = None,
    memories: Sequence[Tensor] | None = None,
) -> PairLosses:
    """Measure what a model loses on each pair, with or without changed heads.

    Args:
        model: the model; it is switched to evaluation mode meanwhile.
        batches: what to measure on.
        edits: as for :func:`edited`; None for none.
        memories: the encoder's output for each batch, if it is known: it saves a third of the
            time where no head of the encoder is changed.

    Returns:
        One entry a pair, in the order of the batches.

    Raises:
        ValueError: if a head of the encoder is changed and memories are given.

    Paper: section 6.2, Table 3
    """
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
    """The encoder's output for each batch, for :func:`pair_losses`.

    Args:
        model: the model; it is switched to evaluation mode meanwhile.
        batches: what to encode.

    Paper: section 3.1, Encoder
    """
    with evaluation_mode(model):
        return [model.encode(batch.source) for batch in batches]
