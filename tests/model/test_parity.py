"""The whole model against torch.nn.Transformer, weights copied over."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.model.small import make_batch, make_ids, make_model
from transformer.interop import to_torch
from transformer.model.transformer import Transformer


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
    model = make_model(norm=norm, dtype=torch.float32, dropout=0.0).train()
    source, target = make_ids(7, 7), make_ids(6, 6, seed=1, bos=True)
    expected = their_logits(model, to_torch(model), source, target)
    torch.testing.assert_close(model(source, target), expected, atol=2e-5, rtol=1e-4)


def test_their_extra_norms_do_change_the_result():
    """The comparison above would notice a final norm in our post-norm stacks."""
    model, (source, target) = make_model(dropout=0.0).train(), make_batch()
    theirs = to_torch(model)
    theirs.decoder.norm = nn.LayerNorm(16).double()
    logits = their_logits(model, theirs, source, target)
    assert not torch.allclose(logits[target != 0], model(source, target)[target != 0])
