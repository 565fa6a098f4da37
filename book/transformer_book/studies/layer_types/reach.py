"""One layer of each kind in Table 1."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention
from transformer.recording import record_attention

#: Kernel width k of the convolutions.
KERNEL = 5
#: Neighbourhood r of restricted attention.
NEIGHBOURHOOD = 17


class Recurrence(nn.Module):
    """A layer of PyTorch's recurrent networks that returns only its states."""

    def __init__(self, kind: Callable[..., nn.RNNBase], d_model: int):
        super().__init__()
        self.network = kind(d_model, d_model, batch_first=True)

    def forward(self, x: Float[Tensor, "B T d_model"]) -> Float[Tensor, "B T d_model"]:
        """Return the state at every position."""
        return self.network(x)[0]


class Convolution(nn.Module):
    """One convolution along the sequence, with nothing after it."""

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


class SelfAttention(nn.Module):
    """Self-attention with one head, its weights written out."""

    def __init__(self, d_model: int):
        super().__init__()
        self.attention = self_attention(d_model)

    def forward(self, x: Float[Tensor, "B T d_model"]) -> Float[Tensor, "B T d_model"]:
        """Let every position attend to every position."""
        with record_attention(self.attention):  # which stores the weights
            return self.attention(x)


class RestrictedAttention(nn.Module):
    """Self-attention with one head to ``neighbourhood`` positions, computed in windows of keys."""

    def __init__(self, d_model: int, neighbourhood: int = NEIGHBOURHOOD):
        super().__init__()
        if neighbourhood % 2 == 0:
            raise ValueError(f"neighbourhood must be odd, to have a middle, got {neighbourhood}")
        self.attention, self.neighbourhood = self_attention(d_model), neighbourhood

    def forward(self, x: Float[Tensor, "B T d_model"]) -> Float[Tensor, "B T d_model"]:
        """Let every position attend to its window."""
        query = self.attention.query_projection(x)
        key = self._windows(self.attention.key_projection(x))
        value = self._windows(self.attention.value_projection(x))
        scores = query.unsqueeze(-2) @ key / query.size(-1) ** 0.5  # (B, T, 1, r)
        exists = self._windows(x.new_ones(1, x.size(1), 1)) > 0  # no neighbours beyond the ends
        weights = scores.masked_fill(~exists, -torch.inf).softmax(dim=-1)
        return self.attention.output_projection((weights @ value.mT).squeeze(-2))

    def _windows(self, x: Tensor) -> Tensor:
        side = self.neighbourhood // 2
        return F.pad(x, (0, 0, side, side)).unfold(1, self.neighbourhood, 1)  # (B, T, d, r), a view
