"""Techniques to save memory: their gradients, and the growth of memory with the length."""

import pytest
import torch

from transformer_book.studies.sparse.long_steps import (
    TECHNIQUES,
    LongStack,
    Technique,
    measure_step,
)

SMALL = dict(d_model=16, num_heads=2, repeats=1, window=16)


def costs(name, length=64):
    return measure_step(TECHNIQUES[name], length, **SMALL)


@pytest.fixture(scope="module")
def plain():
    return costs("plain: weights written out")


@pytest.mark.parametrize("name", ["accumulation, 4 parts", "checkpointing", "fused attention"])
def test_the_gradient_is_the_plain_one_for_less_memory(plain, name):
    found = costs(name)
    torch.testing.assert_close(found.gradient, plain.gradient, atol=1e-7, rtol=1e-3)
    assert plain.gradient.abs().max() > 1e-3
    assert found.peak < 0.8 * plain.peak and found.seconds > 0


@pytest.mark.parametrize(
    "name, low, high",
    [
        ("half precision (bf16)", 1e-4, 0.1),
        ("window by a mask", 0.1, 9),
        ("window and stride in blocks", 0.1, 9),
    ],
)
def test_half_precision_is_near_and_the_patterns_differ(plain, name, low, high):
    off = (costs(name).gradient - plain.gradient).norm() / plain.gradient.norm()
    assert low < off < high


def test_a_window_in_blocks_has_the_gradient_of_its_mask(plain):
    masked, blocks = costs("window by a mask"), costs("window in blocks")
    torch.testing.assert_close(blocks.gradient, masked.gradient, atol=1e-7, rtol=1e-3)
    wide = measure_step(Technique("masked to a window"), 64, **SMALL | dict(window=64))
    assert torch.equal(wide.gradient, plain.gradient)


def test_the_gradient_ends_at_the_border_of_a_segment():
    torch.manual_seed(0)
    whole, cut = (LongStack(Technique("segments"), 8, 1, 1, window) for window in (12, 4))
    cut.load_state_dict(whole.state_dict())
    x = torch.randn(1, 12, 8, requires_grad=True)
    for stack, reaches in ((whole, True), (cut, False)):
        x.grad = None
        target = torch.zeros(1, 12, 8)
        target[:, -1, 0] = 1
        stack.step(x, target)
        assert bool((x.grad[:, :4] != 0).any()) == reaches
