"""Dropout: which elements are dropped, how often, and what happens to the others."""

import pytest
import torch
from torch import nn

from transformer.fast.dropout import Dropout


@pytest.fixture
def ones():
    torch.manual_seed(0)
    return torch.ones(300, 1001)  # not a multiple of four


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_an_element_is_dropped_with_its_probability_and_the_mean_stays(ones, p):
    dropped = Dropout(p)(ones)
    share = (dropped == 0).double().mean().item()
    assert abs(share - p) < 4 * (p * (1 - p) / ones.numel()) ** 0.5 + 1 / 65_536
    scale = torch.tensor([1 / (1 - p)])
    torch.testing.assert_close(dropped[dropped != 0].unique(), scale, rtol=1e-3, atol=0)
    kept = (dropped != 0).double()
    assert abs(kept.mean(0).std() - (p * (1 - p) / 300) ** 0.5) < 0.003  # no column is special
    near = torch.corrcoef(torch.stack([kept[:, i::4].flatten()[:75_000] for i in range(4)]))
    assert (near - torch.eye(4)).abs().max() < 0.02  # four elements share a draw independently


def test_the_gradient_passes_where_the_value_did(ones):
    x = ones.double().mul(3).requires_grad_()
    y = Dropout(0.25)(x)
    (gradient,) = torch.autograd.grad(y.pow(2).sum(), x, create_graph=True)
    torch.testing.assert_close(gradient, 2 * y * (y / 3))  # y = 3 m, where m is the factor
    (second,) = torch.autograd.grad(gradient.sum(), x)
    torch.testing.assert_close(second, 2 * (y / 3) ** 2)


def test_probabilities_0_and_1_and_evaluation(ones):
    state = torch.get_rng_state()
    assert Dropout(0.5).eval()(ones) is ones and Dropout(0.0)(ones) is ones
    assert torch.equal(torch.get_rng_state(), state)
    x = ones.requires_grad_()
    y = Dropout(1.0)(x)
    y.sum().backward()
    assert (y == 0).all() and (x.grad == 0).all()


def test_the_seed_alone_decides(ones):
    found = []
    for threads in (2, 1):
        torch.set_num_threads(threads)
        torch.manual_seed(5)
        found.append(Dropout(0.5)(ones))
    assert torch.equal(*found) and not torch.equal(found[0], Dropout(0.5)(ones))


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_numbers_keep_their_type_and_shape(dtype):
    x = torch.ones(3, 5, 7, dtype=dtype).transpose(0, 2)
    y = Dropout(0.5)(x)
    assert y.dtype == dtype and y.shape == x.shape
    assert set(y.unique().tolist()) == {0.0, 2.0}


def test_on_other_devices_and_under_vmap_it_is_pytorchs_own(ones, monkeypatch):
    calls = []
    monkeypatch.setattr(nn.Dropout, "forward", lambda self, x: calls.append(x.device.type) or x)
    Dropout(0.5)(ones.to("meta"))
    Dropout(0.5)(ones)
    torch.func.vmap(Dropout(0.5), randomness="different")(ones)
    assert calls == ["meta", "cpu"]  # the second is vmap's


def test_the_random_bits_are_on_the_device_of_the_numbers(ones):
    with torch.device("meta"):
        assert (Dropout(0.5)(ones) == 0).any()
