"""One layer of each kind that Table 1 compares: what it costs, and how far a gradient reaches.

Paper: section 4, Table 1
"""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention

Layer = Callable[[Tensor], Tensor]


class Recurrence(nn.Module):
    """A layer of PyTorch's recurrent networks that returns its states alone.

    Args:
        kind: ``nn.RNN``, ``nn.GRU`` or ``nn.LSTM``.
        d_model: size of inputs and states.

    Paper: section 4, Table 1 (recurrent)
    """

    def __init__(self, kind: Callable[..., nn.RNNBase], d_model: int):
        super().__init__()
        self.network = kind(d_model, d_model, batch_first=True)

    def forward(self, x: Float[Tensor, "B T d_model"]) -> Float[Tensor, "B T d_model"]:
        """Return the state at every position.

        Paper: section 4
        """
        return self.network(x)[0]


class Convolutions(nn.Module):
    """A stack of convolutions along the sequence, with a ReLU between two of them.

    Args:
        d_model: number of channels.
        kernel: width k, an odd number.
        depth: number of layers.
        dilated: take inputs 1, 2, 4, ... positions apart, so that the reach doubles with a layer.

    Raises:
        ValueError: if ``kernel`` is even.

    Paper: section 4, Table 1 (convolutional)
    """

    def __init__(self, d_model: int, kernel: int = 3, depth: int = 1, dilated: bool = False):
        super().__init__()
        if kernel % 2 == 0:
            raise ValueError(f"kernel must be odd, to have a middle, got {kernel}")
        gaps = [2**level if dilated else 1 for level in range(depth)]
        self.layers = nn.ModuleList(
            nn.Conv1d(d_model, d_model, kernel, padding=gap * (kernel // 2), dilation=gap)
            for gap in gaps
        )

    def forward(self, x: Float[Tensor, "B T d_model"]) -> Float[Tensor, "B T d_model"]:
        """Convolve; zeros stand before the first and after the last position.

        Paper: section 4
        """
        x = x.transpose(1, 2)  # PyTorch wants the channels before the positions
        for level, layer in enumerate(self.layers):
            x = layer(x if level == 0 else x.relu())
        return x.transpose(1, 2)


def self_attention(d_model: int, num_heads: int = 1) -> MultiHeadAttention:
    """Make a self-attention layer, unmasked.

    Args:
        d_model: size of a vector.
        num_heads: number of heads.

    Paper: section 4, Table 1 (self-attention)
    """
    return MultiHeadAttention(d_model, num_heads)


def gradient_reach(layer: Layer, distance: int, d_model: int, seed: int = 0) -> float:
    """Measure how much the output at a position depends on the input ``distance`` before it.

    Args:
        layer: maps (B, T, d_model) to (B, T, d_model), sequence by sequence.
        distance: positions between the two. The sequence begins at the one and ends at the other.
        d_model: size of a vector.
        seed: of the input, whose components have mean 0 and variance 1.

    Returns:
        The norm of the Jacobian, divided by sqrt(d_model): 1 for a layer that copies the input.

    Paper: section 4 (path length)
    """
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(1, distance + 1, d_model, generator=generator)
    # One copy of the sequence for each component of the output: one backward pass gives all rows
    # of the Jacobian.
    copies = x.expand(d_model, -1, -1).clone().requires_grad_()
    with torch.enable_grad():
        output = layer(copies)[:, -1]
        (gradient,) = torch.autograd.grad(output.trace(), copies)
    return gradient[:, 0].norm().item() / d_model**0.5


def stored_numbers(layer: nn.Module, x: Float[Tensor, "B T d_model"], **options: Any) -> int:
    """Count the numbers that a forward pass keeps for the backward pass, weights left out.

    Args:
        layer: a layer made of PyTorch's operations.
        x: its input.
        options: passed on to the layer.

    Returns:
        How many numbers; one that several operations keep counts once.
    """
    weights = {parameter.data_ptr() for parameter in layer.parameters()}
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes() // tensor.element_size()
        return tensor

    with torch.enable_grad(), torch.autograd.graph.saved_tensors_hooks(keep, lambda kept: kept):
        output = layer(x.clone().requires_grad_(), **options)
    del output  # until here it keeps alive what was counted, so that no address is used twice
    return sum(kept.values())
