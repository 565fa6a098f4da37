"""The layers of Table 1 compute what they should, and their paths have the expected length."""

import math

import pytest
import torch
from torch import nn

from transformer_book.studies.layer_types.layer_types import (
    KERNEL,
    NEIGHBOURHOOD,
    ROWS,
    Convolution,
    RestrictedAttention,
    Rounds,
    SelfAttention,
    path_length,
    reaches,
)
from transformer_book.studies.layer_types.reach import Recurrence


def by_hand(conv, x, offsets):
    """One output of a convolution, (T, d) in, its weights applied one by one."""
    rows = []
    for t in range(len(x)):
        seen = [(k, t + offset) for k, offset in enumerate(offsets) if 0 <= t + offset < len(x)]
        rows.append(sum((conv.weight[:, :, k] @ x[p] for k, p in seen), conv.bias))
    return torch.stack(rows)


@pytest.mark.parametrize(
    "options, offsets",
    [
        (dict(kernel=5, gap=2), (-4, -2, 0, 2, 4)),
        (dict(kernel=3, causal=True), (-2, -1, 0)),
        (dict(kernel=2, gap=3, causal=True), (-3, 0)),
    ],
)
def test_convolution_by_hand(options, offsets):
    torch.manual_seed(0)
    layer, x = Convolution(4, **options), torch.randn(1, 9, 4)
    torch.testing.assert_close(layer(x)[0], by_hand(layer.layers[0], x[0], offsets))


def test_a_separable_convolution_mixes_positions_and_then_channels():
    torch.manual_seed(0)
    layer, x = Convolution(4, kernel=3, separable=True), torch.randn(1, 7, 4)
    along, across = layer.layers
    full = nn.Conv1d(4, 4, 3)
    full.weight.data = torch.diag_embed(along.weight[:, 0].T).permute(1, 2, 0)
    full.bias.data = along.bias.data
    mixed = by_hand(full, x[0], (-1, 0, 1))
    torch.testing.assert_close(layer(x)[0], mixed @ across.weight[:, :, 0].T + across.bias)


@pytest.mark.parametrize("make", [Convolution, RestrictedAttention])
def test_even_widths_have_no_middle(make):
    with pytest.raises(ValueError, match="must be odd"):
        make(8, 4)


def test_restricted_attention_is_attention_under_a_mask():
    torch.manual_seed(0)
    layer, x = RestrictedAttention(8, neighbourhood=5), torch.randn(2, 11, 8)
    mask = layer.mask(11)
    assert mask[5].tolist() == [False] * 3 + [True] * 5 + [False] * 3
    torch.testing.assert_close(layer(x), layer.attention(x, mask=mask))


def test_fused_and_written_attention_agree():
    torch.manual_seed(0)
    written, fused = SelfAttention(8, num_heads=2), SelfAttention(8, fused=True, num_heads=2)
    fused.load_state_dict(written.state_dict())
    x = torch.randn(2, 6, 8)
    torch.testing.assert_close(written(x), fused(x))


@pytest.mark.parametrize("rounds", [4, 6])
def test_after_n_rounds_the_first_n_states_are_those_of_the_recurrence(rounds):
    torch.manual_seed(0)
    recurrence, x, layer = Recurrence(nn.RNN, 8), torch.randn(2, 6, 8), Rounds(8, rounds)
    for weight, value in zip(layer.parameters(), recurrence.parameters(), strict=True):
        weight.data = value.data
    close = torch.isclose(layer(x), recurrence(x), atol=1e-6).all(-1).all(0)
    assert close.tolist() == [True] * rounds + [False] * (6 - rounds)


HALF, SIDE = KERNEL // 2, NEIGHBOURHOOD // 2
FORMULAS = {
    "self-attention": lambda m: 1,
    "recurrent": lambda m: m + 1,
    "convolution, dilated": lambda m: math.ceil(math.log(m + 1, HALF + 1) - 1e-9),
    "self-attention, restricted": lambda m: math.ceil(m / SIDE),
    "convolution, contiguous": lambda m: math.ceil(m / HALF),
    "convolution, separable": lambda m: math.ceil(m / HALF),
}


@pytest.mark.parametrize("name", ROWS)
def test_path_length_is_the_least_number_of_hops(name):
    for distance in (1, 2, 3, 4, 7, 8, 9, 16, 17, 26, 27, 50):
        assert path_length(ROWS[name].hops, distance) == FORMULAS[name](distance), distance
    # No pair of positions is farther apart than the ends.
    torch.manual_seed(0)
    layer = ROWS[name].hops(path_length(ROWS[name].hops, 13), 4).double()
    x = torch.randn(1, 14, 4, dtype=torch.double)
    jacobian = torch.autograd.functional.jacobian(lambda x: layer(x)[0].sum(-1), x)[:, 0]
    connected = (jacobian != 0).any(-1)  # (outputs, inputs)
    everything = torch.ones_like(connected)
    torch.testing.assert_close(connected, everything.tril() if name == "recurrent" else everything)
    assert reaches(ROWS[name].hops(9, 4), 8, 4, back=True) == (name != "recurrent")
