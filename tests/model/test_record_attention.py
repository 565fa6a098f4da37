"""Recording attention weights: which, of what shape, and without a trace afterwards."""

import pytest
import torch

from tests.model.small import make_batch, make_model
from transformer import fast
from transformer.model.attention import MultiHeadAttention, RecordedAttention, record_attention
from transformer.model.masks import causal_mask

NAMES = {f"encoder.{i}.self_attention": (2, 4, 6, 6) for i in range(2)}
NAMES |= {f"decoder.{i}.self_attention": (2, 4, 7, 7) for i in range(3)}
NAMES |= {f"decoder.{i}.cross_attention": (2, 4, 7, 6) for i in range(3)}

MODES = pytest.mark.parametrize(
    "is_fast, training, checkpointing",
    [(False, False, False), (False, True, True), (True, False, False), (True, True, True)],
    ids=["plain", "plain checkpointed", "fast", "fast checkpointed"],
)


def build(is_fast=False, training=False, checkpointing=False, **changes):
    model = make_model(dropout=0.0, **changes).train(training)
    model.checkpoint_activations = checkpointing
    if is_fast:
        fast.enable(model)
    return model


@MODES
@pytest.mark.parametrize("changes", [dict(norm="post"), dict(norm="pre", num_kv_heads=2)])
def test_weights_of_every_layer_are_recorded_once(changes, is_fast, training, checkpointing):
    model = build(is_fast, training, checkpointing, **changes)
    source, target = make_batch()
    before = model(source, target)
    with record_attention(model) as weights:
        logits = model(source, target)
        logits.sin().sum().backward()  # a checkpointed layer runs again
    assert {name: tuple(each.shape) for name, each in weights.items()} == NAMES
    assert isinstance(weights, RecordedAttention)
    groups = [*weights.encoder, *weights.decoder, *weights.cross]
    assert all(each is weights[name] for each, name in zip(groups, NAMES, strict=True))
    assert [len(group) for group in (weights.encoder, weights.decoder)] == [2, 3]
    for each in weights.values():
        torch.testing.assert_close(each.sum(-1), torch.ones_like(each[..., 0]))
    for each in weights.encoder + weights.cross:
        assert (each[1, ..., 2:] == 0).all() and (each[0] > 0).all()
    for each in weights.decoder:
        assert (each[..., ~causal_mask(7)] == 0).all() and (each[..., causal_mask(7)] > 0).all()
    torch.testing.assert_close(logits, before)
    for name, expected in build(**changes).attention_weights(source, target).items():
        real = (source if "encoder" in name else target) != 0  # of padding they are undefined
        found, expected = (each.transpose(1, 2)[real] for each in (weights[name], expected))
        torch.testing.assert_close(found, expected)


def test_the_weights_are_those_that_made_the_output():
    model, (source, target) = make_model(), make_batch()
    attention, seen = model.encoder[1].self_attention, []
    attention.register_forward_hook(lambda m, inputs, output: seen.append((inputs[0], output)))
    weights = model.attention_weights(source, target)["encoder.1.self_attention"]
    model(source, target)
    x, output = seen[-1]
    _, value = attention.project_memory(x)
    heads = (weights @ value).transpose(1, 2).flatten(2)
    torch.testing.assert_close(attention.output_projection(heads), output)


@pytest.mark.parametrize("fails", [False, True])
def test_nothing_is_recorded_after_the_block(fails):
    model, batch = make_model(), make_batch()
    try:
        with record_attention(model) as weights:
            model.attention_weights(*batch)  # a recording inside must not end the one around it
            model(*batch)
            if fails:
                raise KeyError("in the block")
    except KeyError:
        assert fails
    assert weights.keys() == NAMES.keys()
    weights.clear()
    model(*batch)
    assert not weights


def test_the_name_around_a_model_is_not_that_of_its_decoder():
    whole = torch.nn.ModuleDict(dict(encoder_decoder=make_model()))
    with record_attention(whole) as weights:
        whole["encoder_decoder"](*make_batch())
    assert [*map(len, (weights.encoder, weights.decoder, weights.cross))] == [2, 3, 3]


def test_one_attention_alone_has_an_empty_name():
    attention = MultiHeadAttention(8, 2)
    with record_attention(attention) as weights:
        attention(torch.randn(1, 3, 8), torch.randn(1, 5, 8))
    assert {name: each.shape for name, each in weights.items()} == {"": (1, 2, 3, 5)}
