"""The count of operations is the one that PyTorch makes, and the paper's is the paper's."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer.recipes.cost import hardware_flops, training_flops

SIZES = [
    dict(),
    dict(d_k=5, d_v=12),
    dict(num_decoder_layers=3),
    dict(sharing="none", norm="pre"),
    dict(num_kv_heads=1, activation="swiglu"),
    dict(num_kv_heads=1, d_k=5, d_v=12, num_decoder_layers=3),
]


@pytest.mark.parametrize("sizes", SIZES)
def test_as_pytorch_counts_it(sizes):
    config = TransformerConfig(50, d_model=16, d_ff=24, num_heads=2, num_layers=2, **sizes)
    model = Transformer(config)
    source, target = torch.randint(3, 50, (4, 11)), torch.randint(3, 50, (4, 7))
    # PyTorch does not count within its fused attention on the CPU.
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        logits = model(source, target)
        forward = counter.get_total_flops()
        logits.sum().backward()
    assert 3 * forward == counter.get_total_flops() == 4 * training_flops(config, 11, 7)


def test_the_papers_two_models():
    assert f"{hardware_flops(hours=12):.1e}" == "3.3e+18"
    assert f"{hardware_flops(hours=3.5 * 24):.1e}" == "2.3e+19"
    assert hardware_flops(1, devices=1, tflops=1) == 3.6e15


@pytest.mark.parametrize("name", ["hours", "devices", "tflops"])
def test_hardware_time_must_be_positive(name):
    with pytest.raises(ValueError, match=f"{name} must be above 0, got 0"):
        hardware_flops(**({"hours": 1} | {name: 0}))


@pytest.mark.parametrize("lengths", [(0, 5), (5, 0)])
def test_lengths_must_be_positive(lengths):
    with pytest.raises(ValueError, match="_length must be above 0, got 0"):
        training_flops(TransformerConfig.base(), *lengths)
