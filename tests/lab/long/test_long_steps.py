"""Ways to save memory: which give the plain gradient, and what grows with the length."""

from dataclasses import replace

import pytest
import torch

from transformer.lab.long.long_steps import TECHNIQUES, LongStack, Technique, measure_step
from transformer.lab.table_1.operations import peak_bytes
from transformer.lab.table_1.scaling_fit import local_exponents

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


def test_half_precision_is_near_and_the_patterns_are_others(plain):
    def off(name):
        return float((costs(name).gradient - plain.gradient).norm() / plain.gradient.norm())

    assert 1e-4 < off("half precision (bf16)") < 0.1
    assert off("window by a mask") > 0.1 and off("window and stride in blocks") > 0.1


def test_blocks_have_the_gradient_of_their_mask():
    masked, blocks = costs("window by a mask"), costs("window in blocks")
    torch.testing.assert_close(blocks.gradient, masked.gradient, atol=1e-7, rtol=1e-3)


def test_a_window_as_long_as_the_text_is_the_plain_step(plain):
    wide = SMALL | dict(window=64)
    found = measure_step(Technique("masked to a window"), 64, **wide)
    assert torch.equal(found.gradient, plain.gradient)


def test_segments_of_the_whole_text_see_all_of_it():
    # With one segment there is no border, and the gradient reaches everywhere.
    torch.manual_seed(0)
    technique = Technique("segments")
    whole, cut = (LongStack(technique, 8, 1, 1, window) for window in (12, 4))
    cut.load_state_dict(whole.state_dict())
    x = torch.randn(1, 12, 8, requires_grad=True)
    for stack, reaches in ((whole, True), (cut, False)):
        x.grad = None
        target = torch.zeros(1, 12, 8)
        target[:, -1, 0] = 1
        stack.step(x, target)
        assert bool((x.grad[:, :4] != 0).any()) == reaches


def test_three_ways_move_the_square_and_the_others_remove_it():
    for name, technique in TECHNIQUES.items():
        lengths = (96, 192)
        peaks = [
            measure_step(technique, n, d_model=8, num_heads=2, repeats=1, window=16).peak
            for n in lengths
        ]
        (power,) = local_exponents(lengths, peaks)
        square = technique.attention in ("written out", "masked to a window")
        assert (power > 1.7) == square, (name, power)
    assert power < 0.1  # segments, the last


def test_parts_must_divide_the_batch():
    with pytest.raises(ValueError, match="equal parts"):
        measure_step(replace(Technique(), parts=3), 8, batch=4, **SMALL)


def test_peak_bytes_by_hand():
    known = torch.zeros(10)

    def call():
        first = known + 1  # 40 bytes
        second = torch.cat([first, first])  # 80 more
        del first
        return second.sum()

    assert peak_bytes(call, [known]) in (120, 124)
    assert peak_bytes(lambda: known.view(2, 5), [known]) == 0
