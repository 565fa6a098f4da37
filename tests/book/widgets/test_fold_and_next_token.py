"""The explorers of chapters 8 and 10 show what layer and softmax compute, and load nothing."""

import numpy as np
import pytest
import torch

from tests.self_contained import self_contained
from transformer.model.layers import PositionwiseFeedForward
from transformer_book.widgets.folding import FoldExplorer
from transformer_book.widgets.next_token import TEMPERATURES, NextTokenExplorer

POINTS = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


def fold():
    return FoldExplorer(POINTS, [0, 1, 1, 0], ["none", "a", "b", "</script>"])


def next_token():
    logits = torch.randn(3, 20, generator=torch.Generator().manual_seed(0)) * 3
    return NextTokenExplorer(logits, [f"<{i}>" for i in range(20)], ["", "one", "one two"], step=1)


@pytest.mark.parametrize("make", [fold, next_token])
def test_it_is_small_repeatable_and_loads_nothing(make):
    self_contained(make, 100_000)


def test_the_fold_is_one_hidden_unit_and_its_residual_sum():
    layer, explorer = PositionwiseFeedForward(2, 1), fold()
    direction = torch.tensor([np.cos(np.deg2rad(30)), np.sin(np.deg2rad(30))]).float()
    with torch.no_grad():
        layer.hidden.weight.copy_(direction[None])
        layer.hidden.bias.fill_(-0.25)
        layer.output.weight.copy_(-1.5 * direction[:, None])
        layer.output.bias.zero_()
        x = torch.from_numpy(POINTS).float()
        wanted = (x + layer(x[None])[0]).numpy()
    assert np.allclose(explorer.moved(30, 0.25, 1.5), wanted, atol=1e-6)


def test_only_some_folds_separate():
    explorer = fold()
    assert explorer.gap(explorer.points) < 1e-9
    assert explorer.gap(explorer.moved(*explorer.first)) < 1e-9
    assert explorer.gap(explorer.moved(-45, 0, 2)) == pytest.approx(0.5**0.5)
    assert explorer.gap(explorer.moved(45, 0.75, 2)) > 0.6
    with pytest.raises(ValueError, match="same length"):
        FoldExplorer(POINTS, [0, 1], ["a", "b"])


def test_probabilities_are_a_softmax_over_the_whole_vocabulary():
    explorer = next_token()
    data = explorer.payload()
    for step in range(3):
        for warmth, shares in zip(TEMPERATURES, data["shares"][step], strict=True):
            every = (explorer.logits[step] / warmth).softmax(dim=-1).sort(descending=True).values
            assert np.allclose(shares[:-1], every[: len(shares) - 1], atol=1e-3)
            assert sum(shares) == pytest.approx(1, abs=1e-3)
    with pytest.raises(ValueError, match="3 texts"):
        NextTokenExplorer(explorer.logits, ["a"] * 20, ["one"])
