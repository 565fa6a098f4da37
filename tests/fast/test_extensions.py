"""Hooks and adapters work on a built model, fast or not."""

import pytest
import torch
from torch import nn

from tests.model.small import make_batch, make_model
from transformer import fast

both_speeds = pytest.mark.parametrize("is_fast", [False, True], ids=["plain", "fast"])


@both_speeds
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("sharing, activation", [("three-way", "relu"), ("none", "swiglu")])
def test_a_hook_on_every_linear_layer_fires(is_fast, training, sharing, activation):
    model = make_model(sharing=sharing, activation=activation).train(training)
    if is_fast:
        fast.enable(model)
    fired: set[str] = set()
    linear = {name for name, part in model.named_modules() if isinstance(part, nn.Linear)}
    assert len(linear) == 5 * 2 + (2 + 2 * 3) * 4 + 5 * (activation == "swiglu") + (
        sharing == "none"
    )
    for name in linear:
        model.get_submodule(name).register_forward_hook(lambda *_, name=name: fired.add(name))
    source, target = make_batch()
    model(source, target)
    assert fired == linear
    fired.clear()
    model.decode_next(target[:, 0], model.start_decoding(source, max_length=1))
    assert fired == linear


class LoRA(nn.Module):
    """Add a product of two narrow matrices to a linear layer."""

    def __init__(self, layer: nn.Linear):
        super().__init__()
        self.layer = layer
        self.down = nn.Linear(layer.in_features, 2, bias=False).to(layer.weight)
        self.up = nn.Linear(2, layer.out_features, bias=False).to(layer.weight)

    def forward(self, x):
        return self.layer(x) + self.up(self.down(x))


@both_speeds
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize(
    "attention, projection",
    [("encoder.0.self", name) for name in ("query", "key", "value", "output")]
    + [("decoder.1.cross", name) for name in ("query", "key", "value")],
)
@torch.no_grad()
def test_an_adapter_acts_like_the_sum_of_the_matrices(is_fast, training, attention, projection):
    model, merged, usual = (make_model(dropout=0.0).train(training) for _ in range(3))
    part, name = model.get_submodule(f"{attention}_attention"), f"{projection}_projection"
    adapter = LoRA(part.get_submodule(name))
    setattr(part, name, adapter)
    matrix = merged.get_parameter(f"{attention}_attention.{name}.weight")
    matrix += adapter.up.weight @ adapter.down.weight
    if is_fast:
        fast.enable(model)
    source, target = make_batch()
    found = model(source, target)[target != 0]
    torch.testing.assert_close(found, merged(source, target)[target != 0])
    assert not torch.allclose(found, usual(source, target)[target != 0], atol=1e-4)
    steps = [m.decode_next(target[:, 0], m.start_decoding(source, 1)) for m in (model, merged)]
    torch.testing.assert_close(*steps)
