"""Sparse and recurrent attention equal the full one under a mask, gradients included."""

import itertools

import pytest
import torch

from transformer.model.attention import scaled_dot_product_attention
from transformer.model.positional import sinusoidal_table
from transformer_book.studies.sparse import hops, truncation
from transformer_book.studies.sparse.delayed_echo import NOTHING
from transformer_book.studies.sparse.long_steps import TECHNIQUES, measure_step
from transformer_book.studies.sparse.segment_recurrence import RelativeAttention, SegmentModel
from transformer_book.studies.sparse.sparse_attention import (
    local_attention,
    local_mask,
    strided_attention,
    strided_mask,
)


@pytest.mark.parametrize(
    "attend, mask", [(local_attention, local_mask), (strided_attention, strided_mask)]
)
@pytest.mark.parametrize("length, width", [(1, 1), (3, 4), (12, 4), (13, 4), (20, 1)])
def test_blocks_equal_the_mask_and_so_do_their_gradients(attend, mask, length, width):
    torch.manual_seed(0)
    inputs = [torch.randn(2, 3, length, size, requires_grad=True) for size in (8, 8, 5)]
    target = torch.randn(2, 3, length, 5)
    found = attend(*inputs, width)
    expected = scaled_dot_product_attention(*inputs, mask(length, width), need_weights=True)[0]
    torch.testing.assert_close(found, expected)
    gradients = (torch.autograd.grad((out * target).sum(), inputs) for out in (found, expected))
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize(
    "name, plain",
    [
        ("accumulation, 4 parts", "plain: weights written out"),
        ("checkpointing", "plain: weights written out"),
        ("fused attention", "plain: weights written out"),
        ("window in blocks", "window by a mask"),
    ],
)
def test_the_gradient_is_the_plain_one_for_less_memory(name, plain):
    sizes = dict(d_model=16, num_heads=2, repeats=1, window=16)
    found, other = (measure_step(TECHNIQUES[each], 64, **sizes) for each in (name, plain))
    torch.testing.assert_close(found.gradient, other.gradient, atol=1e-7, rtol=1e-3)
    assert found.peak < 0.8 * other.peak and other.gradient.abs().max() > 1e-3


def test_scores_are_the_four_terms_pair_by_pair():
    torch.manual_seed(0)
    layer = RelativeAttention(8, 2)
    for bias in (layer.content_bias, layer.distance_bias):
        torch.nn.init.normal_(bias)
    x, memory = torch.randn(1, 3, 8), torch.randn(1, 4, 8)
    context = torch.cat([memory, x], dim=1)[0]
    q, (k, value) = layer.query(x[0]), layer.key_value(context).chunk(2, dim=-1)
    r = layer.distance(sinusoidal_table(7, 8))
    expected = torch.zeros(3, 8)
    for i, head in itertools.product(range(3), range(2)):
        own, keys = slice(4 * head, 4 * head + 4), range(4 + i + 1)
        by_content, by_distance = (
            q[i, own] + bias[head, 0] for bias in (layer.content_bias, layer.distance_bias)
        )
        scores = [by_content @ k[j, own] + by_distance @ r[4 + i - j, own] for j in keys]
        weights = (torch.stack(scores) / 4**0.5).softmax(0)
        expected[i, own] = weights @ value[: len(keys), own]
    mask = torch.ones(3, 7, dtype=torch.bool).tril(4)
    torch.testing.assert_close(layer(x, memory, mask)[0], layer.out(expected))


def test_one_long_segment_and_many_short_ones_agree_while_the_memory_holds_all():
    torch.manual_seed(0)
    model = SegmentModel(8, num_layers=2, memory_length=100)
    tokens = torch.randint(8, (3, 12))
    whole, _ = model(tokens)
    memories, parts = None, []
    for part in tokens.split(5, dim=1):
        logits, memories = model(part, memories)
        parts.append(logits)
    torch.testing.assert_close(torch.cat(parts, dim=1), whole)


def test_chains_are_counted():
    chains = hops.Case("window of 8", 3, 21).chains()
    assert chains[[14, 18, 20, 21]].tolist() == [36, 10, 3, 1]
    strides = hops.Case("window and stride of 8", 1, 24).chains()
    assert strides.nonzero().flatten().tolist() == [*range(9), 16, 24]


def test_no_gradient_crosses_a_cut():
    torch.manual_seed(0)
    model = truncation.RecurrentReader(size=8)
    tokens = torch.tensor([[1, 2, 2, 3, 3, 3]])
    labels = torch.full((1, 6), NOTHING)
    labels[0, -1] = 0
    for cut, passes in ((6, True), (5, False)):
        model.zero_grad()
        truncation.add_gradient(model, tokens, labels, cut)
        assert bool(model.embedding.weight.grad[1].any()) == passes
