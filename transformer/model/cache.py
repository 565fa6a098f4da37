"""What decoding one token at a time keeps, so that no position is computed twice.

Paper: not in the paper (it follows from the causal mask of section 3.2.3: a position's keys and
values never change once it is computed)
"""

from dataclasses import dataclass

from jaxtyping import Bool, Float, Int
from torch import Tensor


@dataclass
class LayerCache:
    """Keys and values of one decoder layer.

    ``key`` and ``value`` have room for the longest output; the first ``length`` positions are
    filled. ``cross_key`` and ``cross_value`` are the projected source, computed once.

    Paper: not in the paper
    """

    key: Float[Tensor, "rows kv_heads longest d_k"]
    value: Float[Tensor, "rows kv_heads longest d_v"]
    cross_key: Float[Tensor, "n kv_heads S d_k"]
    cross_value: Float[Tensor, "n kv_heads S d_v"]
    length: int = 0

    def append(
        self, key: Float[Tensor, "rows kv_heads 1 d_k"], value: Float[Tensor, "rows kv_heads 1 d_v"]
    ) -> tuple[Float[Tensor, "rows kv_heads t d_k"], Float[Tensor, "rows kv_heads t d_v"]]:
        """Write the newest position in place and return all positions so far.

        Paper: not in the paper
        """
        self.key[:, :, self.length] = key[:, :, 0]
        self.value[:, :, self.length] = value[:, :, 0]
        self.length += 1
        return self.key[:, :, : self.length], self.value[:, :, : self.length]


@dataclass
class DecodingState:
    """The caches of all layers for a batch of sentences, each with ``beam_size`` rows.

    Row r belongs to sentence r // beam_size.

    Paper: not in the paper
    """

    layers: list[LayerCache]
    source_mask: Bool[Tensor, "n 1 1 S"]
    beam_size: int
    position: int = 0

    def reorder(self, rows: Int[Tensor, "kept"]) -> None:
        """Let row i continue the sequence that row ``rows[i]`` holds now.

        A sentence none of whose rows is named leaves the batch, and so do its source keys and
        values. Nothing is allocated but one layer's copy: the rows are written in place.

        Args:
            rows: a multiple of ``beam_size`` row numbers, grouped by sentence and in sentence
                order.

        Paper: not in the paper
        """
        sentences = rows[:: self.beam_size] // self.beam_size
        shrinks = len(sentences) < len(self.source_mask)
        if shrinks:
            self.source_mask = self.source_mask[sentences]
        for layer in self.layers:
            for name in ("key", "value"):
                whole = getattr(layer, name)
                whole[: len(rows), :, : layer.length] = whole[rows, :, : layer.length]
                setattr(layer, name, whole[: len(rows)])
            if shrinks:
                layer.cross_key = layer.cross_key[sentences]
                layer.cross_value = layer.cross_value[sentences]
