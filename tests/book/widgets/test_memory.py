"""The memory explorer of chapter 23 counts what PyTorch keeps for the backward pass."""

import pytest
import torch
from torch.utils.checkpoint import checkpoint

from tests.self_contained import self_contained
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer_book.pictures.after.memory import BLOCK, _scores, running
from transformer_book.widgets.memory import MemoryExplorer

D_MODEL, D_FF, HEADS, LAYERS = 32, 64, 4, 3


def explorer():
    return MemoryExplorer(LAYERS, D_MODEL, D_FF, HEADS, 1000)


def stored(length, sequences=2, checkpointing=False):
    """Bytes that the backward pass of an encoder needs, without parameters."""
    config = TransformerConfig(50, D_MODEL, D_FF, HEADS, num_layers=LAYERS)
    with torch.device("meta"):
        layers = Transformer(config).encoder
    known = {weight.untyped_storage()._cdata for weight in layers.parameters()}
    alive = {}

    def pack(tensor):
        if tensor.untyped_storage()._cdata not in known:
            alive[tensor.untyped_storage()._cdata] = tensor  # alive, so that no id comes twice
        return tensor

    x = torch.empty(sequences, length, D_MODEL, device="meta", requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        for layer in layers:
            if checkpointing:
                pack(x)
                x = checkpoint(layer, x, None, use_reentrant=True)
            else:
                x = layer(x, None)
    return sum(tensor.untyped_storage().nbytes() for tensor in alive.values())


@pytest.mark.parametrize("length", [16, 64, 256])
def test_its_pieces_are_what_pytorch_stores(length):
    pieces = explorer().pieces(length, sequences=2)
    wanted = pieces["activations"] + pieces["attention weights"]
    assert stored(length) == pytest.approx(wanted, rel=0.03)


def test_checkpointing_stores_the_inputs_and_one_layer():
    found, whole = (explorer().pieces(64, 2, checkpointing=each) for each in (True, False))
    inputs = stored(64, checkpointing=True)
    assert found["activations"] == whole["activations"] / LAYERS + inputs
    assert found["attention weights"] == whole["attention weights"] / LAYERS


def test_parts_and_fused_attention():
    whole = explorer().pieces(64, 8)
    parts, fused = explorer().pieces(64, 8, parts=4), explorer().pieces(64, 8, fused=True)
    assert parts["activations"] * 4 == whole["activations"]
    assert fused["row sums"] * 64 == whole["attention weights"]
    assert {each["parameters, gradients, Adam"] for each in (whole, parts, fused)} == {16_000}


def test_it_is_small_repeatable_and_loads_nothing():
    assert self_contained(explorer, 60_000)["dFf"] == D_FF
    with pytest.raises(ValueError, match="5..15"):
        MemoryExplorer(LAYERS, D_MODEL, D_FF, HEADS, 1000, power=4)


def test_the_running_sum_of_the_picture_is_the_sum_of_the_row():
    words, scores = _scores()
    for query in range(len(words)):
        steps = running(query)
        assert len(steps) == -(-len(words) // BLOCK)
        row = torch.as_tensor(scores[query])
        largest, total = steps[-1]
        assert largest == pytest.approx(float(row.max()))
        assert total == pytest.approx(float((row - row.max()).exp().sum()), rel=1e-5)
