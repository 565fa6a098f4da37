"""Attention in blocks is attention under a mask, and stores less."""

import pytest
import torch
from jaxtyping import TypeCheckError
from torch import nn

from transformer.lab.long.sparse_attention import (
    SparseAttention,
    local_attention,
    local_mask,
    strided_attention,
    strided_mask,
)
from transformer.lab.table_1.operations import peak_memory
from transformer.model.attention import scaled_dot_product_attention

SIZES = [(1, 1), (3, 4), (7, 3), (12, 4), (13, 4), (20, 1), (5, 9)]


def test_masks_by_hand():
    assert local_mask(4, 2).int().tolist() == [
        [1, 0, 0, 0],
        [1, 1, 0, 0],
        [0, 1, 1, 0],
        [0, 0, 1, 1],
    ]
    assert strided_mask(5, 2).int().tolist() == [
        [1, 0, 0, 0, 0],
        [0, 1, 0, 0, 0],
        [1, 0, 1, 0, 0],
        [0, 1, 0, 1, 0],
        [1, 0, 1, 0, 1],
    ]


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
    torch.testing.assert_close(layer(x), layer.attention(x, mask=layer.mask(23)))


def test_both_patterns_have_their_heads():
    mask = SparseAttention(12, 3, 4, "both").mask(9)
    assert torch.equal(mask[0], local_mask(9, 4))
    assert torch.equal(mask[1], strided_mask(9, 4)) and torch.equal(mask[1], mask[2])


def test_memory_grows_with_the_length_and_not_its_square():
    class Masked(nn.Module):
        def __init__(self, layer):
            super().__init__()
            self.layer = layer

        def forward(self, x):
            mask = self.layer.mask(x.size(1))
            return self.layer.attention(x, mask=mask, maps=[])

    layer = SparseAttention(8, 2, 8)
    short, long = torch.randn(1, 128, 8), torch.randn(1, 256, 8)
    assert peak_memory(layer, long) < 2.1 * peak_memory(layer, short)
    assert peak_memory(Masked(layer), long) > 3.5 * peak_memory(Masked(layer), short)


def test_refuses_what_it_cannot_do():
    with pytest.raises((ValueError, TypeCheckError), match="pattern"):
        SparseAttention(8, 2, 4, "dilated")
    with pytest.raises(ValueError, match="at least 2 heads"):
        SparseAttention(8, 1, 4, "both")
