"""The whole model against torch.nn.Transformer, weights copied over."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.model.small import make_batch, make_ids, make_model
from transformer.model.attention import MultiHeadAttention
from transformer.model.transformer import Transformer

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor")


def copy_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention):
    inputs = (ours.query_projection, ours.key_projection, ours.value_projection)
    theirs.in_proj_weight.data.copy_(torch.cat([layer.weight for layer in inputs]))
    theirs.in_proj_bias.data.copy_(torch.cat([layer.bias for layer in inputs]))
    theirs.out_proj.load_state_dict(ours.output_projection.state_dict())


def to_torch(model: Transformer) -> nn.Transformer:
    """Build their model with our weights."""
    c = model.config
    theirs = nn.Transformer(
        c.d_model,
        c.num_heads,
        len(model.encoder),
        len(model.decoder),
        c.d_ff,
        dropout=0.0,
        activation=c.activation,
        layer_norm_eps=c.layer_norm_eps,
        batch_first=True,
        norm_first=c.norm == "pre",
    ).to(model.output_weight.dtype)
    if c.norm == "post":  # these two are not in the paper
        theirs.encoder.norm = theirs.decoder.norm = nn.Identity()
    else:
        theirs.encoder.norm.load_state_dict(model.encoder_norm.state_dict())
        theirs.decoder.norm.load_state_dict(model.decoder_norm.state_dict())
    pairs = [*zip(model.encoder, theirs.encoder.layers, strict=True)]
    pairs += [*zip(model.decoder, theirs.decoder.layers, strict=True)]
    for mine, other in pairs:
        copy_attention(mine.self_attention, other.self_attn)
        norms = [mine.self_attention_residual.norm]
        if hasattr(mine, "cross_attention"):
            copy_attention(mine.cross_attention, other.multihead_attn)
            norms.append(mine.cross_attention_residual.norm)
        norms.append(mine.feed_forward_residual.norm)
        for number, norm in enumerate(norms, start=1):
            getattr(other, f"norm{number}").load_state_dict(norm.state_dict())
        other.linear1.load_state_dict(mine.feed_forward.hidden.state_dict())
        other.linear2.load_state_dict(mine.feed_forward.output.state_dict())
    return theirs.train()  # in eval mode they take another path; dropout is 0


def their_logits(model: Transformer, theirs: nn.Transformer, source, target) -> torch.Tensor:
    """Run their stacks between our embedding and our output matrix."""
    length = target.size(1)
    states = theirs(
        model.positions(model.embedding(source)),
        model.target_positions(model.embed_target(target)),
        tgt_mask=torch.ones(length, length, dtype=torch.bool).triu(1),  # their True = masked
        src_key_padding_mask=source == 0,
        tgt_key_padding_mask=target == 0,
        memory_key_padding_mask=source == 0,
    )
    return F.linear(states, model.output_weight)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(
    "changes",
    [
        dict(),
        dict(activation="gelu", layer_norm_eps=1e-3),
        dict(sharing="none", positions="learned"),
        dict(sharing="target", positions="sinusoidal-t2t", num_heads=2),
    ],
)
def test_logits_and_gradients_equal_torch(norm, changes):
    model = make_model(norm=norm, dropout=0.0, **changes).train()
    theirs = to_torch(model)
    source, target = make_ids(7, 4, 1), make_ids(5, 6, 2, seed=1, bos=True)
    ours = model(source, target)[target != 0]
    expected = their_logits(model, theirs, source, target)[target != 0]
    torch.testing.assert_close(ours, expected)

    first, last = model.encoder[0].self_attention, model.decoder[-1].feed_forward
    inputs = (first.query_projection, first.key_projection, first.value_projection)
    weights = [layer.weight for layer in (*inputs, last.hidden, model.embedding)]
    *parts, hidden, embedding = torch.autograd.grad(ours.sin().sum(), weights)
    their_first, their_last = theirs.encoder.layers[0].self_attn, theirs.decoder.layers[-1]
    # Their embedded inputs come from our matrix, so its gradient can be compared as well.
    others = [their_first.in_proj_weight, their_last.linear1.weight, model.embedding.weight]
    gradients = torch.autograd.grad(expected.sin().sum(), others)
    torch.testing.assert_close((torch.cat(parts), hidden, embedding), gradients)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_single_precision_equals_torch(norm):
    model = make_model(norm=norm, dtype=torch.float32)
    source, target = make_ids(7, 7), make_ids(6, 6, seed=1, bos=True)
    expected = their_logits(model, to_torch(model), source, target)
    torch.testing.assert_close(model(source, target), expected, atol=2e-5, rtol=1e-4)


def test_their_extra_norms_do_change_the_result():
    """The comparison above would notice a final norm in our post-norm stacks."""
    model, (source, target) = make_model(), make_batch()
    theirs = to_torch(model)
    theirs.decoder.norm = nn.LayerNorm(16).double()
    assert not torch.allclose(their_logits(model, theirs, source, target), model(source, target))
