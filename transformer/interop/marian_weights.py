"""Convert Marian's weights so that the paper's model computes what Marian's computes.

Marian's model is the paper's with a few differences. None of them needs another model: they are
folded into the weights, and the result is a plain
:class:`~transformer.model.transformer.Transformer`.

* *Positions*: Marian puts all sines before all cosines, we alternate them, at the same
  wavelengths. So every coordinate of a d_model vector moves, in all matrices that touch one.
* *Output bias*: Marian's logits have a bias, ours have none. But a layer norm leaves a direction
  free: its normalised values sum to 0 over the coordinates. The output matrix carries the bias
  along this direction (:func:`fold_bias`), and gives it back (:func:`unfold_bias`).
* *Start*: Marian's decoder starts with the padding id. Our model hides padding, so the start is a
  token of its own, the last one, with the same vector.
* *Scale*: if ``scale_embedding`` is false, the embeddings are divided by the factor sqrt(d_model)
  that our model multiplies by.

One list of names (:func:`stack_names`) serves both directions.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer.model.config import TransformerConfig
from transformer.model.positional import sinusoidal_table
from transformer.model.transformer import Transformer

SOURCE, TARGET = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
OUTPUT, SHARED = "lm_head.weight", "model.shared.weight"
IMPOSSIBLE = -1e4  # a logit whose softmax is 0 in every number format

#: The attention of a layer, ours and theirs; an encoder layer has only the first.
ATTENTION = {"self_attention": "self_attn", "cross_attention": "encoder_attn"}
#: The projections of an attention, ours and theirs.
PROJECTIONS = {
    "query_projection": "q_proj",
    "key_projection": "k_proj",
    "value_projection": "v_proj",
    "output_projection": "out_proj",
}
#: The feed-forward network of a layer and its norm.
FEED_FORWARD = {
    "feed_forward.hidden": "fc1",
    "feed_forward.output": "fc2",
    "feed_forward_residual.norm": "final_layer_norm",
}


class NamePair(NamedTuple):
    """A parameter of ours and the tensor of ``MarianMTModel`` that holds the same numbers."""

    ours: str
    theirs: str
    rows: bool = False  #: are the coordinates of a d_model vector, whose order differs
    columns: bool = False  #: the same for its columns


def layer_names(stack: str, number: int) -> Iterator[NamePair]:
    """Pair the names of one layer."""
    ours, theirs = f"{stack}.{number}", f"model.{stack}.layers.{number}"
    modules: dict[str, str] = {}
    for attention, their_attention in ATTENTION.items():
        if stack == "encoder" and attention == "cross_attention":
            continue
        for projection, their_projection in PROJECTIONS.items():
            modules[f"{attention}.{projection}"] = f"{their_attention}.{their_projection}"
        modules[f"{attention}_residual.norm"] = f"{their_attention}_layer_norm"
    for name, their_name in (modules | FEED_FORWARD).items():
        # Such a module reads d_model coordinates; all others return d_model coordinates.
        reads = their_name == "fc1" or their_name.endswith(("q_proj", "k_proj", "v_proj"))
        for kind in ("weight", "bias"):
            names = f"{ours}.{name}.{kind}", f"{theirs}.{their_name}.{kind}"
            yield NamePair(*names, rows=not reads, columns=reads and kind == "weight")


def stack_names(num_layers: int, num_decoder_layers: int) -> list[NamePair]:
    """Pair the names of all layers; embeddings and output are no plain copies and not included."""
    counts = {"encoder": num_layers, "decoder": num_decoder_layers}
    return [
        pair
        for stack, count in counts.items()
        for n in range(count)
        for pair in layer_names(stack, n)
    ]


def coordinate_order(d_model: int) -> Int[Tensor, " d_model"]:
    """Return the order of coordinates: our coordinate i is their coordinate ``order[i]``.

    Theirs has all sines before all cosines, and one more sine if d_model is odd; ours alternate.
    """
    half, order = (d_model + 1) // 2, torch.arange(d_model)
    order[0::2], order[1::2] = order[:half].clone(), order[half:].clone()
    return order


def vocabulary_sizes(settings: Mapping[str, Any]) -> tuple[int, int]:
    """Return the number of tokens of source and target in Marian's settings."""
    size = settings["vocab_size"]
    if settings["share_encoder_decoder_embeddings"]:
        return size, size
    return size, settings["decoder_vocab_size"] or size


@torch.no_grad()
def convert(
    tensors: Mapping[str, Tensor], settings: Mapping[str, Any], config: TransformerConfig
) -> Transformer:
    """Make our model with Marian's weights, in evaluation mode.

    Args:
        tensors: Marian's, by Hugging Face's names.
        settings: Marian's, complete.
        config: ours; its ``sharing`` is "none", and its last id is ``bos_id``.

    Raises:
        ValueError: if a tensor is missing, has another shape or no place in our model.
    """
    model = Transformer(config)
    weights = _Weights(dict(tensors), coordinate_order(config.d_model))
    parameters = dict(model.named_parameters())
    for pair in stack_names(len(model.encoder), len(model.decoder)):
        weights.put(parameters[pair.ours], pair.theirs, pair.rows, pair.columns)
    _fill_vocabulary(model, weights, settings)
    for stack in ("encoder", "decoder"):
        _require_sinusoids(weights, f"model.{stack}.embed_positions.weight")
    if weights.tensors:
        raise ValueError(f"weights that our model has no place for: {', '.join(weights.tensors)}")
    return model.eval()


@dataclass
class _Weights:
    """Marian's tensors, each copied once.

    ``order[i]`` is their coordinate of a d_model vector that is our coordinate i.
    """

    tensors: dict[str, Tensor]
    order: Int[Tensor, " d_model"]

    def put(self, ours: Tensor, name: str, rows: bool = False, columns: bool = False) -> None:
        """Copy a tensor; ``rows`` and ``columns`` say which axes are coordinates."""
        theirs = self._of_shape(ours.shape, name)
        theirs = theirs[self.order] if rows else theirs
        ours.copy_(theirs[:, self.order] if columns else theirs)
        del self.tensors[name]

    def matrix(self, num_rows: int, *names: str) -> Float[Tensor, "V d_model"]:
        """Return the first of ``names`` that exists; keep it, since several may share it."""
        name = next((name for name in names if name in self.tensors), names[0])
        return self._of_shape((num_rows, len(self.order)), name)[:, self.order]

    def _of_shape(self, shape: Sequence[int], name: str) -> Tensor:
        if name not in self.tensors:
            raise ValueError(f"the weights lack {name}")
        found = self.tensors[name]
        if found.shape != tuple(shape):
            expected, got = tuple(shape), tuple(found.shape)
            raise ValueError(f"{name} must be {expected} by config.json, got {got}")
        return found


def _fill_vocabulary(model: Transformer, weights: _Weights, settings: Mapping[str, Any]) -> None:
    share, tie = settings["share_encoder_decoder_embeddings"], settings["tie_word_embeddings"]
    # A file holds one copy of shared matrices, under any of their names.
    source_names = [SOURCE] + share * [SHARED] + (share and tie) * [TARGET, OUTPUT]
    target_names = [TARGET] + share * [SHARED] + tie * [OUTPUT] + (share and tie) * [SOURCE]
    output_names = [OUTPUT] + tie * [TARGET] + (share and tie) * [SHARED, SOURCE]
    source_size, target_size = vocabulary_sizes(settings)
    source = weights.matrix(source_size, *source_names)
    target = weights.matrix(target_size, *target_names)
    output = weights.matrix(target_size, *output_names)
    bias = torch.zeros(1, target_size)
    if "final_logits_bias" in weights.tensors:
        weights.put(bias, "final_logits_bias")
    for name in (SOURCE, TARGET, OUTPUT, SHARED):
        weights.tensors.pop(name, None)

    scale = 1.0 if settings["scale_embedding"] else 1 / model.embedding.scale
    start = model.config.bos_id
    for embedding, rows in ((model.embedding, source), (model.target_embedding, target)):
        embedding.weight.zero_()  # for ids that one of the two vocabularies lacks
        embedding.weight[: len(rows)] = rows * scale
    model.target_embedding.weight[start] = target[settings["decoder_start_token_id"]] * scale

    norm = model.decoder[-1].feed_forward_residual.norm
    assert isinstance(norm, nn.LayerNorm)
    impossible = torch.full((model.config.vocab_size,), IMPOSSIBLE)
    impossible[:target_size] = bias[0]
    impossible[model.config.pad_id] = IMPOSSIBLE
    rows = torch.zeros_like(model.output.weight)
    rows[:target_size] = output
    rows[model.config.pad_id] = 0.0
    model.output.weight.copy_(fold_bias(rows, impossible, norm))


@torch.no_grad()
def fold_bias(
    rows: Float[Tensor, "V d_model"], bias: Float[Tensor, " V"], norm: nn.LayerNorm
) -> Float[Tensor, "V d_model"]:
    """Return rows that give, without a bias, the logits that ``rows`` and ``bias`` give.

    Let n be the normalised values of ``norm``, before its gain g and shift s. The logits are
    rows (g n + s) + bias. Since the coordinates of n sum to 0, the product of 1/g with (g n + s) is
    a constant, the sum of s/g. So a multiple of 1/g, added to a row, adds a constant to its logit.
    To keep that sum away from 0, the shift becomes s + g or s - g, by the sign of the sum; the
    multiples make up for it.
    """
    gain = norm.weight
    gain.copy_(torch.where(gain.abs() < 1e-6, 1e-6, gain))
    sign, before = 1.0 if (norm.bias / gain).sum() >= 0 else -1.0, rows.double()
    multiples = bias.double() - sign * before @ gain.double()
    norm.bias.add_(sign * gain)
    constant = (norm.bias.double() / gain.double()).sum()
    return (before + torch.outer(multiples / constant, 1 / gain.double())).to(rows)


@torch.no_grad()
def unfold_bias(
    folded: Float[Tensor, "V d_model"], rows: Float[Tensor, "V d_model"], norm: nn.LayerNorm
) -> tuple[Float[Tensor, " V"], Float[Tensor, " d_model"]] | None:
    """Undo :func:`fold_bias`: return the bias and the former shift of the norm, to rounding.

    None if ``folded`` is not made of ``rows``, as after a training.
    """
    gain, shift = norm.weight.double(), norm.bias.double()
    along = (folded.double() - rows) * gain
    multiples = along.mean(dim=1)
    # The mean has the rounding of its whole row.
    size = (folded * gain).abs().amax(dim=1) + multiples.abs()
    if ((along - multiples[:, None]).abs().amax(dim=1) > 1e-6 * size).any():
        return None
    constant = (shift / gain).sum()
    sign = 1.0 if constant >= 0 else -1.0
    bias = multiples * constant + sign * rows.double() @ gain
    return bias.to(rows), (shift - sign * gain).to(rows)


def _require_sinusoids(weights: _Weights, name: str) -> None:
    """Check the table of positions that some files hold: trained positions would be another."""
    table = weights.tensors.pop(name, None)
    if table is None:
        return
    expected = sinusoidal_table(len(table), len(weights.order))
    # Half precision rounds them.
    if table[:, weights.order].sub(expected).abs().max() > 0.01:
        raise ValueError(f"{name} must be Marian's sinusoids, it holds other positions")
