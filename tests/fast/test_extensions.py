"""Hooks, adapters and compilation work on a built model, fast or not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.model.small import make_batch, make_model
from transformer import fast

both_speeds = pytest.mark.parametrize("is_fast", [False, True], ids=["plain", "fast"])


@both_speeds
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("sharing", ["three-way", "target", "none"])
@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "swiglu", "geglu"])
def test_a_hook_on_every_linear_layer_fires(is_fast, training, sharing, activation):
    model = make_model(sharing=sharing, activation=activation).train(training)
    if is_fast:
        fast.enable(model)
    fired: set[str] = set()
    linear = {name for name, part in model.named_modules() if isinstance(part, nn.Linear)}
    assert len(linear) == 5 * 2 + (2 + 2 * 3) * 4 + 5 * (activation in ("swiglu", "geglu")) + (
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
@pytest.mark.parametrize("attention", ["encoder.0.self", "decoder.1.self", "decoder.1.cross"])
@pytest.mark.parametrize("projection", ["query", "key", "value", "output"])
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


COMPILED = """
import torch
from tests.model.small import make_batch, make_model
from transformer import fast

batch = make_batch()
for enable in (False, True):
    sizes = dict(num_layers=1, num_decoder_layers=1, dropout=0.0)
    model = make_model(dtype=torch.float32, **sizes).train()

    def states(source, target):
        return model.decoder_states(target, model.encode(source), source)

    expected = states(*batch)
    if enable:
        fast.enable(model)
    compiled = torch.compile(states, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(*batch), expected)
"""


def test_encoder_and_decoder_compile_without_a_graph_break():
    """In a process of its own, because the checks of shapes cannot be compiled."""
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": str(root)}
    subprocess.run([sys.executable, "-c", COMPILED], cwd=root, env=environment, check=True)
