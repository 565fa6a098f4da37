"""Which of our parameters is which of Hugging Face's Marian: one list, read in both directions.

Paper: section 3 (the same architecture in another program)
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

#: The attention of a layer, ours and theirs; an encoder layer has the first one only.
ATTENTION = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
#: The projections of an attention in the order in which ours keeps them in one matrix.
PROJECTIONS = ("q_proj", "k_proj", "v_proj")
#: The feed-forward network of a layer and its norm.
FEED_FORWARD = {
    "feed_forward.hidden": "fc1",
    "feed_forward.output": "fc2",
    "feed_forward_residual.norm": "final_layer_norm",
}


@dataclass(frozen=True)
class NamePair:
    """A tensor of ours and the one of theirs that holds the same numbers.

    Args:
        ours: name of the parameter in a :class:`~transformer.model.transformer.Transformer`.
        theirs: name of the tensor in Hugging Face's ``MarianMTModel``.
        part: which third of ours it is, 0 to 2, where ours keeps three in one; None for all of it.
        rows: whether its rows count the coordinates of a d_model vector, which stand in another
            order there.
        columns: the same for its columns.
    """

    ours: str
    theirs: str
    part: int | None = None
    rows: bool = False
    columns: bool = False

    def of(self, parameter: Tensor) -> Tensor:
        """The part of our parameter that is meant, as a view.

        Args:
            parameter: (rows, columns) or (rows,); a part has a third of the rows.
        """
        return parameter if self.part is None else parameter.chunk(3)[self.part]


def layer_names(stack: str, number: int) -> Iterator[NamePair]:
    """Pair the names of one layer.

    Args:
        stack: "encoder" or "decoder".
        number: of the layer, from 0.

    Paper: section 3.1
    """
    ours, theirs = f"{stack}.{number}", f"model.{stack}.layers.{number}"
    for attention, their_attention in ATTENTION.items():
        if stack == "encoder" and attention == "cross_attention":
            continue
        for part, projection in enumerate(PROJECTIONS):
            name = f"{theirs}.{their_attention}.{projection}"
            matrix = f"{ours}.{attention}.in_projection"
            yield NamePair(f"{matrix}.weight", f"{name}.weight", part, columns=True)
            yield NamePair(f"{matrix}.bias", f"{name}.bias", part)
        pairs = {
            f"{attention}.out_projection": f"{their_attention}.out_proj",
            f"{attention}_residual.norm": f"{their_attention}_layer_norm",
        }
        for name, their_name in pairs.items():
            for kind in ("weight", "bias"):
                yield NamePair(f"{ours}.{name}.{kind}", f"{theirs}.{their_name}.{kind}", rows=True)
    for name, their_name in FEED_FORWARD.items():
        first = their_name == "fc1"  # from d_model to d_ff; the others end in d_model
        for kind in ("weight", "bias"):
            names = f"{ours}.{name}.{kind}", f"{theirs}.{their_name}.{kind}"
            yield NamePair(*names, rows=not first, columns=first and kind == "weight")


def stack_names(num_layers: int, num_decoder_layers: int) -> list[NamePair]:
    """Pair the names of all layers. Embeddings and output are no plain copies, and not among them.

    Args:
        num_layers: of the encoder.
        num_decoder_layers: of the decoder.

    Paper: section 3.1
    """
    counts = {"encoder": num_layers, "decoder": num_decoder_layers}
    return [
        pair
        for stack, count in counts.items()
        for n in range(count)
        for pair in layer_names(stack, n)
    ]


def coordinate_order(d_model: int) -> Int[Tensor, " d_model"]:
    """Say where the coordinates of a vector stand: ours number i is theirs number ``order[i]``.

    Theirs has all sines before all cosines, and one more sine if d_model is odd; ours alternate.

    Args:
        d_model: size of a vector.

    Paper: section 3.5
    """
    half, order = (d_model + 1) // 2, torch.arange(d_model)
    order[0::2], order[1::2] = order[:half].clone(), order[half:].clone()
    return order
