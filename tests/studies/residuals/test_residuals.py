"""Wrappers have the parts that their names say, and a recorded probe comes out again."""

import numpy as np
import pytest
import torch
from torch import nn

from transformer.recipes.record import read_record
from transformer_book.studies.residuals import study as depth


@pytest.mark.parametrize("residual", [True, False])
@pytest.mark.parametrize("place", ["none", "post", "pre"])
def test_the_wrapper_by_hand(residual, place):
    def normal(x):
        mean, variance = x.mean(-1, keepdim=True), x.var(-1, correction=0, keepdim=True)
        return (x - mean) / (variance + 1e-6).sqrt()

    x = torch.randn(2, 3, 8)
    y = 3 * (normal(x) if place == "pre" else x) - torch.arange(8)
    y = y + 2 * x if residual else y
    y = normal(y) if place == "post" else y
    wrapper = depth.Wrapper(8, depth.Kind(residual, place), alpha=2.0)
    torch.testing.assert_close(wrapper(x, lambda x: 3 * x - torch.arange(8)), y)


def test_a_seed_draws_the_same_matrices_for_every_kind():
    one, other = (nn.ModuleList(depth.untrained(depth.KINDS[name], 3, layers=2)).state_dict()
                  for name in ("post-norm", "neither"))  # fmt: skip
    assert one.keys() == other.keys() and all(torch.equal(one[n], other[n]) for n in one)


def test_a_recorded_probe_comes_out_again():
    found = depth.probe(depth.start(), depth.KINDS["post-norm"], depth.SEEDS[0], depths=(2,))
    recorded = read_record(depth.RECORD)["found"]["post-norm"]
    assert np.allclose(found.likeness, recorded["likeness"][0], atol=1e-3)
    assert np.allclose(found.size, recorded["size"][0], rtol=1e-3)
    assert found.gradients[0][0] == pytest.approx(recorded["first"][0][1], rel=1e-2)
