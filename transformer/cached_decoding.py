"""Decoding one token at a time with cached keys and values, so that no position is computed twice.

The beams of a sentence are queries to the same keys, those of its past and those of its source, so
that both are stored once per sentence.
"""

from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass
class LayerCache:
    """Keys and values of one decoder layer, by sentence.

    ``key`` and ``value`` have room for the longest output; the first ``length`` entries are
    filled. Each step adds one entry per beam of a sentence; entries are never moved.
    ``cross_key`` and ``cross_value`` are the projected source, computed once.
    """

    key: Float[Tensor, "n kv_heads longest d_k"]
    value: Float[Tensor, "n kv_heads longest d_v"]
    cross_key: Float[Tensor, "n kv_heads S d_k"]
    cross_value: Float[Tensor, "n kv_heads S d_v"]
    length: int = 0

    def append(
        self,
        key: Float[Tensor, "n kv_heads beams d_k"],
        value: Float[Tensor, "n kv_heads beams d_v"],
    ) -> tuple[Float[Tensor, "n kv_heads t d_k"], Float[Tensor, "n kv_heads t d_v"]]:
        """Write the newest position of each beam in place and return all entries so far.

        Raises:
            IndexError: if there is no room for it.
        """
        start, self.length = self.length, self.length + key.size(2)
        if self.length > self.key.size(2):
            raise IndexError(
                f"the cache is full: capacity {self.key.size(2)}, needed {self.length}"
            )
        self.key[:, :, start : self.length] = key
        self.value[:, :, start : self.length] = value
        return self.key[:, :, : self.length], self.value[:, :, : self.length]


@dataclass
class DecodingState:
    """The caches of all layers for a batch of sentences, each with ``beam_size`` rows.

    Row r belongs to sentence r // beam_size. All beams of a sentence query the same entries: their
    own and those of beams that ended. ``ancestors`` says which entries belong to the past of each
    beam; a row that continues another beam takes over that beam's ancestors.

    ``source_mask`` may be None if there is no padding; ``ancestors`` is None for a single beam.
    """

    layers: list[LayerCache]
    source_mask: Bool[Tensor, "n 1 1 S"] | None
    ancestors: Bool[Tensor, "n 1 beams longest"] | None
    beam_size: int
    position: int = 0

    def __len__(self) -> int:
        """Number of sentences."""
        return len(self.layers[0].key)

    def visible(self) -> Bool[Tensor, "n 1 beams t"] | None:
        """Return which entries each beam may attend to, its newest included; None for all."""
        end = (self.position + 1) * self.beam_size
        return None if self.ancestors is None else self.ancestors[..., :end]

    def reorder(self, rows: Int[Tensor, "kept"]) -> None:
        """Let row i continue the sequence that row ``rows[i]`` holds now.

        ``rows`` are grouped by sentence, ``beam_size`` each; on the CPU a ValueError says so. A
        sentence without any row left leaves the batch; its number may go to another sentence. If
        none leaves, rows on a GPU must stay with their sentences; if one does, numbers on the CPU
        spare a wait for the GPU.
        """
        sentences = rows[:: self.beam_size] // self.beam_size
        stay = len(sentences) == len(self)
        if rows.device.type == "cpu":  # elsewhere a comparison would wait for the GPU
            if not torch.equal(rows // self.beam_size, sentences.repeat_interleave(self.beam_size)):
                raise ValueError("rows must be grouped by sentence")
            stay = sentences.tolist() == [*range(len(self))]
        if not stay:
            self._keep(sentences)
        if self.ancestors is not None:
            past = self.ancestors[:, 0, :, : self.position * self.beam_size]
            rows = rows.to(past.device, non_blocking=True)
            parents = (rows % self.beam_size).view(len(sentences), self.beam_size, 1)
            past.copy_(past.gather(1, parents.expand_as(past)))

    def _keep(self, sentences: Int[Tensor, "kept"]) -> None:
        places = torch.arange(len(sentences), device=sentences.device)
        moved = (sentences != places).nonzero().flatten()
        device = self.layers[0].key.device
        moved, origin, sentences = (
            numbers.to(device, non_blocking=True)
            for numbers in (moved, sentences[moved], sentences)
        )
        if self.source_mask is not None:
            self.source_mask = self.source_mask[sentences]
        if self.ancestors is not None:
            self.ancestors = self.ancestors[sentences]
        for layer in self.layers:
            for name in ("key", "value"):
                whole = getattr(layer, name)
                whole[moved, :, : layer.length] = whole[origin, :, : layer.length]
                setattr(layer, name, whole[: len(sentences)])
            layer.cross_key = layer.cross_key[sentences]
            layer.cross_value = layer.cross_value[sentences]


def own_entries(beam_size: int, length: int, device: torch.device) -> Bool[Tensor, "beams longest"]:
    """Mark each beam's own entries of ``length`` steps: every ``beam_size``-th."""
    return torch.eye(beam_size, dtype=torch.bool, device=device).repeat(1, length)


class CachedDecoding:
    """The two methods that a search calls, for a model with the layers of a Transformer.

    It uses the model's layers from outside; the model's own code knows no caches.
    """

    def start_decoding(
        self: Any, source: Int[Tensor, "n S"], max_length: int, beam_size: int = 1
    ) -> DecodingState:
        """Encode the source and make room for ``beam_size`` outputs of each sentence.

        Args:
            source: source ids, padded with ``pad_id``.
            max_length: maximum number of :meth:`decode_next` calls.
            beam_size: rows per sentence.

        Raises:
            ValueError: if there are fewer learned positions than ``max_length``.
        """
        if self.longest is not None and max_length > self.longest:
            raise ValueError(
                f"max_length {max_length} is beyond the {self.longest} learned positions"
            )
        memory = self.encode(source)
        layers = []
        for layer in self.decoder:
            cross_key, cross_value = layer.cross_attention.project_memory(memory)
            room = (*cross_key.shape[:2], max_length * beam_size)
            key = cross_key.new_empty(*room, cross_key.size(-1))
            value = cross_value.new_empty(*room, cross_value.size(-1))
            layers.append(LayerCache(key, value, cross_key, cross_value))
        own = own_entries(beam_size, max_length, source.device)
        return DecodingState(
            layers,
            source_mask=self.source_mask(source),
            ancestors=None if beam_size == 1 else own.repeat(len(source), 1, 1, 1),
            beam_size=beam_size,
        )

    def decode_next(
        self: Any, tokens: Int[Tensor, "rows"], state: DecodingState
    ) -> Float[Tensor, "rows V"]:
        """Feed the newest token of each row and return the logits of the one after it.

        Args:
            tokens: ``bos_id`` on the first call, then the tokens that the search chose.
            state: the return value of :meth:`start_decoding`; it advances by one position.

        Raises:
            IndexError: after ``max_length`` calls: the cache is full.
        """
        x = self.embed_target(tokens[:, None])
        x = self.target_positions(x, start=state.position).view(len(state), state.beam_size, -1)
        visible = state.visible()
        for layer, cache in zip(self.decoder, state.layers, strict=True):
            x = _step(layer, x, cache, state.position, visible, state.source_mask)
        state.position += 1
        return self.logits(self.decoder_norm(x).flatten(0, 1))


def _step(
    layer: Any,
    x: Float[Tensor, "n beams d_model"],
    cache: LayerCache,
    position: int,
    visible: Bool[Tensor, "..."] | None,
    source_mask: Bool[Tensor, "..."] | None,
) -> Float[Tensor, "n beams d_model"]:
    """Run a decoder layer on the newest position of each beam; the cache holds the earlier ones."""

    def attend_to_past(y: Tensor) -> Tensor:
        attention, newest = layer.self_attention, y.unsqueeze(-2)  # a sequence of one per beam
        query, key, value = (
            each.squeeze(-2).transpose(1, 2)
            for each in (
                attention.project_query(newest, position),
                *attention.project_memory(newest, position),
            )
        )
        heads = attention.attend(query, *cache.append(key, value), visible)
        return attention.output_projection(heads)

    def attend_to_source(y: Tensor) -> Tensor:
        attention = layer.cross_attention
        query = attention.project_query(y)
        heads = attention.attend(query, cache.cross_key, cache.cross_value, source_mask)
        return attention.output_projection(heads)

    x = layer.self_attention_residual(x, attend_to_past)
    x = layer.cross_attention_residual(x, attend_to_source)
    return layer.feed_forward_residual(x, layer.feed_forward)
