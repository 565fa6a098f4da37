"""One layer of each kind in Table 1."""

from collections.abc import Callable

import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention

#: Kernel width k of the convolutions.
KERNEL = 5


class Recurrence(nn.Module):
    """A layer of PyTorch's recurrent networks that returns only its states."""

    def __init__(self, kind: Callable[..., nn.RNNBase], d_model: int):
        super().__init__()
        self.network = kind(d_model, d_model, batch_first=True)

    def forward(self, x: Float[Tensor, "B T d_model"]) -> Float[Tensor, "B T d_model"]:
        """Return the state at every position."""
        return self.network(x)[0]


class Convolution(nn.Module):
    """One convolution along the sequence, with nothing after it.

    Args:
        kernel: width k; an odd number, unless causal.
        gap: distance between its inputs; a dilated convolution has a gap above 1.
        separable: first mix each channel along the sequence, then the channels at each position.
    """

    def __init__(
        self,
        d_model: int,
        kernel: int = KERNEL,
        gap: int = 1,
        separable: bool = False,
        causal: bool = False,
    ):
        super().__init__()
        if kernel % 2 == 0 and not causal:
            raise ValueError(f"kernel must be odd, to have a middle, got {kernel}")
        self.before = gap * (kernel - 1) if causal else 0
        padding = 0 if causal else gap * (kernel // 2)
        groups = d_model if separable else 1
        self.layers = nn.Sequential(
            nn.Conv1d(d_model, d_model, kernel, groups=groups, padding=padding, dilation=gap)
        )
        if separable:
            self.layers.append(nn.Conv1d(d_model, d_model, 1))

    def forward(self, x: Float[Tensor, "B T d_model"]) -> Float[Tensor, "B T d_model"]:
        """Convolve; the sequence is padded with zeros."""
        x = x.mT  # PyTorch expects channels before positions
        return self.layers(F.pad(x, (self.before, 0)) if self.before else x).mT


def self_attention(d_model: int, num_heads: int = 1) -> MultiHeadAttention:
    """Make a self-attention layer."""
    return MultiHeadAttention(d_model, num_heads)
