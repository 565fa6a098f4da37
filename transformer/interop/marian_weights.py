"""Marian's weights, rewritten so that the paper's model computes with them what Marian's does.

Marian's model is the paper's with other habits. None of them needs another model: they are written
into the weights, and what comes out is a plain :class:`~transformer.model.transformer.Transformer`.

* *Positions*: all sines stand before all cosines. Ours alternate, at the same wavelengths. So
  every coordinate of a d_model vector moves to our place for it, in all matrices that touch one.
* *Output bias*: each logit has one, ours have none. But a layer norm leaves a direction free: what
  it has normalised sums to 0 over the coordinates. The output matrix takes over gain and shift of
  the last norm, and the bias travels along the free direction (``_fold_output``).
* *Start*: Marian's decoder starts with the padding id. Ours hides padding, so the start is a token
  of its own here, the last one, with the same vector.
* *Scale*: where ``scale_embedding`` is false, the embeddings are divided by the factor
  sqrt(d_model) that ours multiply by.

Paper: section 3 (the same architecture in another program)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer.interop.marian_names import coordinate_order, stack_names
from transformer.model.config import TransformerConfig
from transformer.model.positional import sinusoidal_table
from transformer.model.transformer import Transformer

SOURCE, TARGET = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
OUTPUT, SHARED = "lm_head.weight", "model.shared.weight"
IMPOSSIBLE = -1e4  # a logit whose softmax is 0 in every type of number


def vocabulary_sizes(settings: Mapping[str, Any]) -> tuple[int, int]:
    """How many tokens Marian's settings give source and target."""
    size = settings["vocab_size"]
    if settings["share_encoder_decoder_embeddings"]:
        return size, size
    return size, settings["decoder_vocab_size"] or size


@torch.no_grad()
def convert(
    tensors: Mapping[str, Tensor], settings: Mapping[str, Any], config: TransformerConfig
) -> Transformer:
    """Make our model with Marian's weights.

    Args:
        tensors: Marian's, by Hugging Face's names.
        settings: Marian's, complete.
        config: ours; its ``sharing`` is "none", and its last id is ``bos_id``.

    Returns:
        The model, in evaluation mode.

    Raises:
        ValueError: if a tensor is missing, left over or of another shape than the settings say, or
            if the positions are not Marian's sinusoids.

    Paper: section 3
    """
    model = Transformer(config)
    weights = _Weights(dict(tensors), coordinate_order(config.d_model))
    parameters = dict(model.named_parameters())
    for pair in stack_names(len(model.encoder), len(model.decoder)):
        weights.put(pair.of(parameters[pair.ours]), pair.theirs, pair.rows, pair.columns)
    _fill_vocabulary(model, weights, settings)
    for stack in ("encoder", "decoder"):
        _require_sinusoids(weights, f"model.{stack}.embed_positions.weight")
    if weights.tensors:
        raise ValueError(f"weights that our model has no place for: {', '.join(weights.tensors)}")
    return model.eval()


@dataclass
class _Weights:
    """Marian's tensors, each put in its place once.

    ``order[i]`` is the coordinate of a d_model vector of theirs that is our coordinate i.
    """

    tensors: dict[str, Tensor]
    order: Int[Tensor, " d_model"]

    def put(self, ours: Tensor, name: str, rows: bool = False, columns: bool = False) -> None:
        """Copy a tensor; ``rows`` and ``columns`` say which of its axes counts coordinates."""
        theirs = self._of_shape(ours.shape, name)
        theirs = theirs[self.order] if rows else theirs
        ours.copy_(theirs[:, self.order] if columns else theirs)
        del self.tensors[name]

    def matrix(self, num_rows: int, *names: str) -> Float[Tensor, "V d_model"]:
        """The first of ``names`` that is there; it stays, as another matrix may be the same."""
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
    """The two embeddings and the output matrix."""
    share, tie = settings["share_encoder_decoder_embeddings"], settings["tie_word_embeddings"]
    # Of matrices that are one and the same, a file holds one, under any of their names.
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
        embedding.weight.zero_()  # ids that one of the two vocabularies lacks
        embedding.weight[: len(rows)] = rows * scale
    model.target_embedding.weight[start] = target[settings["decoder_start_token_id"]] * scale

    norm = model.decoder[-1].feed_forward_residual.norm
    assert isinstance(norm, nn.LayerNorm)
    folded = _fold_output(output, bias[0], norm)
    model.output.weight.fill_(IMPOSSIBLE / model.config.d_model)
    model.output.weight[:target_size] = folded
    model.output.weight[model.config.pad_id] = IMPOSSIBLE / model.config.d_model


def _fold_output(
    rows: Float[Tensor, "V d_model"], bias: Float[Tensor, " V"], norm: nn.LayerNorm
) -> Float[Tensor, "V d_model"]:
    """Rows that give, without a bias, the logits that ``rows`` and ``bias`` give.

    Let n be what ``norm`` has normalised, before its gain g and shift s. The logits are
    rows (g n + s) + bias = (rows g) n + c with c = rows s + bias. Since the coordinates of n sum
    to 0, a number added to a whole row changes nothing there. So gain and shift become 1, and to
    each row of (rows g) such a number is added that the row sums to c: times (n + 1), it gives c
    beside (rows g) n.
    """
    constant = rows @ norm.bias + bias
    folded = rows * norm.weight
    folded += ((constant - folded.sum(dim=1)) / rows.size(1))[:, None]
    norm.weight.fill_(1.0)
    norm.bias.fill_(1.0)
    return folded


def _require_sinusoids(weights: _Weights, name: str) -> None:
    """Some files hold the table of positions too, and one of trained ones would be another."""
    table = weights.tensors.pop(name, None)
    if table is None:
        return
    expected = sinusoidal_table(len(table), len(weights.order))
    # Files in half precision have rounded them.
    if table[:, weights.order].sub(expected).abs().max() > 0.01:
        raise ValueError(f"{name} must be Marian's sinusoids, it holds other positions")
