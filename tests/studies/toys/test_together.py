"""Networks that are trained together do what each would do alone."""

import torch
from torch import nn

from transformer_book.studies.together import Together
from transformer_book.studies.training_loop import optimise


def make():
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))


def test_training_together_is_training_alone():
    inputs = torch.randn(2, 5, 3, generator=torch.Generator().manual_seed(0))
    networks = Together(make, (7, 8))
    alone = []
    for seed, given in zip((7, 8), inputs, strict=True):
        torch.manual_seed(seed)
        one = make()
        torch.testing.assert_close(networks(inputs)[seed - 7], one(given))
        optimise(one, lambda _, one=one, given=given: one(given).square().mean(), 5, lambda _: 0.01)
        alone.append(one(given))
    optimise(
        networks, lambda _: networks(inputs).square().mean(dim=(1, 2)).sum(), 5, lambda _: 0.01
    )
    torch.testing.assert_close(networks(inputs), torch.stack(alone))
    assert (alone[0] - alone[1]).abs().max() > 0.01
