"""Recording attention weights: which, of what shape, and without a trace afterwards."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from threading import Barrier

import pytest
import torch

from tests.model.small import make_batch, make_ids, make_model
from transformer import fast
from transformer.model.attention import MultiHeadAttention
from transformer.model.masks import causal_mask
from transformer.recording import RecordedAttention, record_attention

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


def test_blocks_may_overlap_and_end_in_any_order():
    model, other, batch = make_model(), make_model(), make_batch()
    alone = model.attention_weights(*batch)
    opened, around = ExitStack(), ExitStack()
    first = opened.enter_context(record_attention(model))
    second = around.enter_context(record_attention(model))
    third = around.enter_context(record_attention(other))
    model(*batch)
    assert not third
    torch.testing.assert_close([dict(first), dict(second)], [dict(alone)] * 2)
    first.clear()
    opened.close()  # before the blocks in it
    model(*batch[::-1])
    other(*batch)
    assert not first and second.encoder[0].size(2) == batch[1].size(1)
    assert third.keys() == NAMES.keys()
    around.close()
    second.clear(), third.clear()
    model(*batch), other(*batch)
    assert not (first or second or third)


def test_threads_record_each_its_own_run_of_a_model():
    """At the same time, half of them only run the model."""
    model, size = make_model().eval(), 6
    batches = [
        (make_ids(6, 2, seed=n), make_ids(3, 7, seed=size + n, bos=True)) for n in range(size)
    ]
    expected = [(model(*batch), model.attention_weights(*batch)) for batch in batches]
    together = Barrier(size, timeout=60)

    def run(number):
        with ExitStack() as stack:
            recording = record_attention(model) if number % 2 else nullcontext({})
            weights = stack.enter_context(recording)
            together.wait()  # all blocks are open
            logits = model(*batches[number])
            together.wait()  # and none has ended
        return logits, weights

    with ThreadPoolExecutor(size) as pool, record_attention(model) as outside:
        found = list(pool.map(run, range(size)))
    assert not outside
    for number, (logits, weights) in enumerate(found):
        torch.testing.assert_close(logits, expected[number][0])
        wanted = expected[number][1] if number % 2 else {}
        torch.testing.assert_close(dict(weights), dict(wanted))


def test_a_checkpoint_records_in_whatever_thread_the_backward_pass_runs():
    """On a GPU it is one of PyTorch's own."""
    model, batch = build(training=True, checkpointing=True), make_batch()
    with ThreadPoolExecutor(1) as pool, record_attention(model) as weights:
        loss = model(*batch).sin().sum()
        pool.submit(loss.backward).result()
    assert weights.keys() == NAMES.keys() and model.embedding.weight.grad.any()


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


@pytest.mark.usefixtures("unchecked")  # whose own code would be compiled, too
def test_a_compiled_model_is_one_graph_and_can_be_recorded():
    attention, x = MultiHeadAttention(8, 2).eval(), torch.randn(2, 3, 8)
    graph = torch.compile(attention, backend="eager", fullgraph=True)
    compiled = torch.compile(attention, backend="eager")
    torch.testing.assert_close(graph(x), compiled(x))
    with record_attention(attention) as weights:
        compiled(x)
    assert weights[""].shape == (2, 2, 3, 3)
    weights.clear()
    torch.testing.assert_close(graph(x), compiled(x))
    assert not weights
