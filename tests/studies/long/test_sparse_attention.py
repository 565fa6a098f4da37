"""Attention in blocks is attention under a mask, and stores less."""

import pytest
import torch

from transformer.model.attention import scaled_dot_product_attention
from transformer_book.studies.layer_types.operations import peak_memory
from transformer_book.studies.sparse.sparse_attention import (
    SparseAttention,
    local_attention,
    local_mask,
    strided_attention,
    strided_mask,
)

SIZES = [(1, 1), (3, 4), (7, 3), (12, 4), (13, 4), (20, 1), (5, 9)]


def test_masks_by_hand():
    assert local_mask(4, 2)[3].tolist() == [False, False, True, True]
    assert strided_mask(5, 2)[4].tolist() == [True, False, True, False, True]
    for mask in (local_mask(9, 3), strided_mask(9, 3)):
        assert not mask.triu(1).any() and mask.diagonal().all()


@pytest.mark.parametrize(
    "attend, mask", [(local_attention, local_mask), (strided_attention, strided_mask)]
)
@pytest.mark.parametrize("length, width", SIZES)
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


@pytest.mark.parametrize("pattern", ["local", "strided", "both"])
def test_the_layer_is_full_attention_under_its_mask(pattern):
    torch.manual_seed(0)
    layer, x = SparseAttention(16, 4, 5, pattern), torch.randn(2, 23, 16)
    mask = layer.mask(23)
    torch.testing.assert_close(layer(x), layer.attention(x, mask=mask))
    local = [torch.equal(head, local_mask(23, 5)) for head in mask]
    assert local == [pattern == "local" or (pattern == "both" and head < 2) for head in range(4)]


def test_memory_grows_with_the_length_and_not_its_square():
    layer = SparseAttention(8, 2, 8)
    short, long = torch.randn(1, 128, 8), torch.randn(1, 256, 8)
    assert peak_memory(layer, long) < 2.1 * peak_memory(layer, short)
