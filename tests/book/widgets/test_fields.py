"""The receptive fields of chapter 18 are those of the layers that it measures."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.self_contained import self_contained
from transformer_book.pictures import WORDS
from transformer_book.studies.layer_types.layer_types import (
    RestrictedAttention,
    Rounds,
    SelfAttention,
    dilated,
)
from transformer_book.studies.layer_types.reach import Convolution
from transformer_book.widgets.fields import KINDS, FieldExplorer, receptive_fields

SOURCE, OUTPUT = WORDS.index("animal"), WORDS.index("it")
LAYERS = {
    KINDS[0]: lambda m: nn.Sequential(*(SelfAttention(4) for _ in range(m))),
    KINDS[1]: lambda m: Rounds(4, m),
    KINDS[2]: lambda m: nn.Sequential(*(Convolution(4, 3) for _ in range(m))),
    KINDS[3]: lambda m: dilated(m, 4, kernel=3),
    KINDS[4]: lambda m: nn.Sequential(*(RestrictedAttention(4, 5) for _ in range(m))),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_a_field_is_where_the_gradient_is_not_zero(kind, depth):
    torch.manual_seed(0)
    x = torch.randn(1, 12, 4, dtype=torch.double, requires_grad=True)
    LAYERS[kind](depth).double()(x)[0, OUTPUT].sum().backward()
    wanted = (x.grad[0] != 0).any(dim=-1).numpy()
    assert np.array_equal(receptive_fields(kind, depth, OUTPUT, 12)[0], wanted)


def test_it_is_small_repeatable_and_loads_nothing():
    def explorer():
        return FieldExplorer(["</script>", *WORDS[1:]], OUTPUT, SOURCE)

    self_contained(explorer, 60_000)


def test_positions_outside_the_words_are_refused():
    with pytest.raises(ValueError, match="among them"):
        FieldExplorer(WORDS, 12, 0)
