"""The reach explorer follows the masks."""

import pytest
import torch

from tests.self_contained import self_contained
from transformer_book.pictures import TOKENS
from transformer_book.widgets.masks import PATTERNS, ReachExplorer


def explorer():
    return ReachExplorer(TOKENS, query=8)


def test_it_is_small_repeatable_and_loads_nothing():
    assert self_contained(explorer, 60_000)["query"] == 8


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("causal", [False, True])
def test_its_hops_are_powers_of_the_mask(pattern, causal):
    shown = explorer()
    mask = shown.mask(pattern, 3, causal)
    found, step = shown.hops(mask, 4), mask.float() + torch.eye(len(mask))
    assert not (causal and mask.triu(1).any())
    for layers in range(1, 5):
        power = torch.linalg.matrix_power(step, layers) > 0
        assert torch.equal(power, (found >= 0) & (found <= layers))


def test_the_patterns():
    shown = explorer()
    rows = {name: shown.mask(name, 5)[6].nonzero().flatten().tolist() for name in PATTERNS}
    assert rows["window"] == [4, 5, 6, 7, 8]
    assert rows["window and stride"] == [1, 4, 5, 6, 7, 8, 11]
    assert rows["window and global token"] == [0, 4, 5, 6, 7, 8]
    assert rows["blocks"] == [5, 6, 7, 8, 9]
    assert rows["all positions"] == [*range(14)]


@pytest.mark.parametrize(
    "wrong", [dict(width=4), dict(width=11), dict(layers=0), dict(query=14), dict(tokens="abc")]
)
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ReachExplorer(**dict(tokens=TOKENS) | wrong)
