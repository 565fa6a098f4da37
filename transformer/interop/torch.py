"""Convert weights from and to ``torch.nn.Transformer``, PyTorch's own encoder and decoder.

PyTorch's model is the two stacks alone, without embedding, positions, output matrix and masks. Its
boolean masks mean True = hidden, the opposite of ours.
"""

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention
from transformer.model.config import TransformerConfig
from transformer.model.layers import DecoderLayer
from transformer.model.transformer import Transformer

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "silu": F.silu}


@torch.no_grad()
def to_torch(model: Transformer) -> nn.Transformer:
    """Make PyTorch's model with our weights; it computes what our stacks compute.

    Args:
        model: any model whose heads have the size d_model / num_heads.

    Returns:
        A model of embedded sequences, batch first, in the mode (train or eval) and dtype of
        ``model``. It has final norms only where ours has them. Biases that ours lacks are 0.

    Raises:
        ValueError: if the model has an option that PyTorch's lacks: another d_k, d_v or scale of
            the scores, shared keys and values, rotary positions, another norm, a gate.
    """
    c = model.config
    size = c.d_model / c.num_heads
    for name, holds, expected in (
        ("d_k", c.d_k in (None, size), f"{size:g}"),
        ("d_v", c.d_v in (None, size), f"{size:g}"),
        ("attention_scale", c.attention_scale in (None, size**-0.5), f"{size**-0.5:g}"),
        ("num_kv_heads", c.num_kv_heads in (None, c.num_heads), c.num_heads),
        ("positions", c.positions != "rotary", "added to the input"),
        ("norm_kind", c.norm_kind == "layer", "'layer'"),
        ("activation", c.activation in ACTIVATIONS, f"one of {[*ACTIVATIONS]}"),
    ):
        if not holds:
            raise ValueError(
                f"{name} must be {expected} for torch.nn.Transformer, got {getattr(c, name)!r}"
            )
    options: dict[str, Any] = dict(
        dim_feedforward=c.d_ff,
        activation=ACTIVATIONS[c.activation],
        layer_norm_eps=c.layer_norm_eps,
        batch_first=True,
        norm_first=c.norm == "pre",
    )
    has_norm = isinstance(model.encoder_norm, nn.LayerNorm)
    norms = [nn.LayerNorm(c.d_model, c.layer_norm_eps) if has_norm else None for _ in range(2)]
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(c.d_model, c.num_heads, **options),
        len(model.encoder),
        norms[0],
        # Nested tensors would return 0 at padding positions, unlike our stacks.
        enable_nested_tensor=False,
    )
    decoder = nn.TransformerDecoder(
        nn.TransformerDecoderLayer(c.d_model, c.num_heads, **options), len(model.decoder), norms[1]
    )
    stacks = nn.Transformer(
        c.d_model,
        c.num_heads,
        custom_encoder=encoder,
        custom_decoder=decoder,
        batch_first=True,
    ).to(model.output_weight)
    for layer in [*encoder.layers, *decoder.layers]:
        _set_dropout(layer, c)
    for ours, theirs in _pairs(model, stacks):
        if theirs is not None:
            theirs.zero_() if ours is None else theirs.copy_(ours)
    return stacks.train(model.training)


@torch.no_grad()
def from_torch(
    stacks: nn.Transformer, embedding: Float[Tensor, "V d_model"], **changes: Any
) -> Transformer:
    """Make our model with the weights of PyTorch's.

    Args:
        stacks: a model with PyTorch's own encoder and decoder. Its sizes, activation, dropout,
            place of the norms and final norms become ours.
        embedding: the vector of each token before the factor sqrt(d_model). One matrix for
            source, target and output; with another ``sharing`` it is the source's, and the others
            are initialised at random.
        changes: settings that the stacks do not determine: ``positions``, ``sharing``, ...

    Returns:
        The model, in the mode and dtype of ``stacks``.

    Raises:
        ValueError: if ``embedding`` has another d_model, the layers are not PyTorch's, their
            activation is not one of ours, or only one stack ends in a norm.
    """
    encoder, decoder = stacks.encoder, stacks.decoder
    layer = encoder.layers[0]
    if not isinstance(layer, nn.TransformerEncoderLayer):
        raise ValueError(
            f"stacks must have layers of torch.nn.TransformerEncoderLayer, got {type(layer)}"
        )
    d_model = layer.linear1.in_features
    if embedding.size(1) != d_model:
        raise ValueError(f"embedding must be (V, {d_model}) as stacks, got {embedding.shape}")
    names = [name for name, function in ACTIVATIONS.items() if layer.activation is function]
    if not names:
        raise ValueError(f"activation must be one of {[*ACTIVATIONS]}, got {layer.activation!r}")
    has_norm = encoder.norm is not None
    if has_norm != (decoder.norm is not None):
        raise ValueError("stacks must end in a norm both or neither, got one with and one without")
    config = TransformerConfig.from_dict(
        dict(
            vocab_size=len(embedding),
            d_model=d_model,
            d_ff=layer.linear1.out_features,
            num_heads=layer.self_attn.num_heads,
            num_layers=len(encoder.layers),
            num_decoder_layers=len(decoder.layers),
            dropout=layer.dropout1.p,
            attention_dropout=layer.self_attn.dropout,
            activation_dropout=layer.dropout.p,
            activation=names[0],
            norm="pre" if layer.norm_first else "post",
            final_norm=has_norm,
            attention_bias=layer.self_attn.in_proj_bias is not None,
            layer_norm_eps=layer.norm1.eps,
        )
        | changes
    )
    model = Transformer(config).to(layer.linear1.weight)
    for ours, theirs in _pairs(model, stacks):
        if ours is not None:
            ours.zero_() if theirs is None else ours.copy_(theirs)
    model.embedding.weight.copy_(embedding)
    return model.train(stacks.training)


def _set_dropout(layer: nn.Module, config: TransformerConfig) -> None:
    """Set our three dropout rates, of which PyTorch's constructor takes only one."""
    for name, module in layer.named_children():
        if isinstance(module, nn.Dropout):  # "dropout" and "dropout1" to "dropout3"
            module.p = config.activation_dropout if name == "dropout" else config.dropout
        elif isinstance(module, nn.MultiheadAttention):
            module.dropout = config.attention_dropout


Pair = tuple[Tensor | None, Tensor | None]


def _pairs(model: Transformer, stacks: nn.Transformer) -> Iterator[Pair]:
    """Yield every parameter of our stacks with its counterpart; None if one side lacks it."""
    layers = zip(
        [*model.encoder, *model.decoder],
        [*stacks.encoder.layers, *stacks.decoder.layers],
        strict=True,
    )
    for ours, theirs in layers:
        yield from _layer_pairs(ours, theirs)
    for norm, counterpart in (
        (model.encoder_norm, stacks.encoder.norm),
        (model.decoder_norm, stacks.decoder.norm),
    ):
        if counterpart is not None:
            yield from _affine_pairs(norm, counterpart)


# PyTorch's modules are Any: mypy sees their attributes as "Tensor | Module".
def _layer_pairs(ours: Any, theirs: Any) -> Iterator[Pair]:
    yield from _attention_pairs(ours.self_attention, theirs.self_attn)
    residuals = [ours.self_attention_residual]
    if isinstance(ours, DecoderLayer):
        yield from _attention_pairs(ours.cross_attention, theirs.multihead_attn)
        residuals.append(ours.cross_attention_residual)
    residuals.append(ours.feed_forward_residual)
    for number, residual in enumerate(residuals, start=1):
        yield from _affine_pairs(residual.norm, getattr(theirs, f"norm{number}"))
    yield from _affine_pairs(ours.feed_forward.hidden, theirs.linear1)
    yield from _affine_pairs(ours.feed_forward.output, theirs.linear2)


def _attention_pairs(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> Iterator[Pair]:
    # Theirs keeps W^Q, W^K and W^V of all heads as the rows of one matrix, in this order.
    projections = ours.query_projection, ours.key_projection, ours.value_projection
    biases = (None,) * 3 if theirs.in_proj_bias is None else theirs.in_proj_bias.chunk(3)
    for projection, weight, bias in zip(
        projections, theirs.in_proj_weight.chunk(3), biases, strict=True
    ):
        yield projection.weight, weight
        yield projection.bias, bias
    yield from _affine_pairs(ours.output_projection, theirs.out_proj)


def _affine_pairs(ours: Any, theirs: Any) -> Iterator[Pair]:
    yield ours.weight, theirs.weight
    yield ours.bias, theirs.bias
