"""Runnable layers of Table 1, and path lengths between two positions measured by gradient."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer.recording import record_attention
from transformer_book.studies.layer_types.reach import (
    KERNEL,
    Convolution,
    Recurrence,
    self_attention,
)

#: Neighbourhood r of restricted attention.
NEIGHBOURHOOD = 17


class SelfAttention(nn.Module):
    """Self-attention with one head."""

    def __init__(self, d_model: int, fused: bool = False, num_heads: int = 1):
        super().__init__()
        self.attention, self.fused = self_attention(d_model, num_heads), fused

    def forward(self, x: Float[Tensor, "B T d_model"]) -> Float[Tensor, "B T d_model"]:
        """Let every position attend to every position."""
        if self.fused:
            return self.attention(x)
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

    def mask(self, length: int) -> Bool[Tensor, "T T"]:
        """Make the mask with which full attention gives the same output; True = may attend."""
        place = torch.arange(length)
        return (place[:, None] - place).abs() <= self.neighbourhood // 2

    def _windows(self, x: Tensor) -> Tensor:
        side = self.neighbourhood // 2
        return F.pad(x, (0, 0, side, side)).unfold(1, self.neighbourhood, 1)  # (B, T, d, r), a view


class Rounds(nn.Module):
    """A recurrence applied to all positions at once: in each round a state moves one place."""

    def __init__(self, d_model: int, rounds: int):
        super().__init__()
        self.cell, self.rounds = nn.RNNCell(d_model, d_model), rounds

    def forward(self, x: Float[Tensor, "B T d_model"]) -> Float[Tensor, "B T d_model"]:
        """Return the states after the last round."""
        states = torch.zeros_like(x)
        for _ in range(self.rounds):
            last = F.pad(states, (0, 0, 1, 0))[:, :-1]
            states = self.cell(x.flatten(0, 1), last.flatten(0, 1)).view_as(x)
        return states


@dataclass(frozen=True)
class Row:
    """A row of Table 1, or a layer type from the text below it."""

    make: Callable[[int], nn.Module]
    hops: Callable[[int, int], nn.Module]
    complexity: str  #: complexity in the paper; n length, d size, k kernel, r neighbourhood.
    sequential: str
    path: str
    in_text: bool = False  #: whether the row comes from the text and not from the table.


def _stack(make: Callable[[int], nn.Module]) -> Callable[[int, int], nn.Module]:
    return lambda depth, d_model: nn.Sequential(*(make(d_model) for _ in range(depth)))


def dilated(
    depth: int, d_model: int, kernel: int = KERNEL, growth: int | None = None, causal: bool = False
) -> nn.Module:
    """Stack convolutions whose gaps grow from layer to layer, as fast as leaves no hole."""
    if growth is None:
        growth = kernel if causal else (kernel + 1) // 2
    return nn.Sequential(
        *(Convolution(d_model, kernel, growth**level, causal=causal) for level in range(depth))
    )


def _separable(d_model: int) -> Convolution:
    return Convolution(d_model, separable=True)


# The rows of Table 1 in its order, then two convolutions from the text.
ROWS: dict[str, Row] = {
    "self-attention": Row(SelfAttention, _stack(SelfAttention), "n² d", "1", "1"),
    "recurrent": Row(
        lambda d_model: Recurrence(nn.RNN, d_model),
        lambda depth, d_model: Rounds(d_model, depth),
        "n d²",
        "n",
        "n",
    ),
    "convolution, dilated": Row(
        lambda d_model: Convolution(d_model, gap=3), dilated, "k n d²", "1", "log_k n"
    ),
    "self-attention, restricted": Row(
        RestrictedAttention, _stack(RestrictedAttention), "r n d", "1", "n / r"
    ),
    "convolution, contiguous": Row(
        Convolution, _stack(Convolution), "k n d²", "1", "n / k", in_text=True
    ),
    "convolution, separable": Row(
        _separable, _stack(_separable), "k n d + n d²", "1", "n / k", in_text=True
    ),
}


def reaches(layer: nn.Module, distance: int, d_model: int, back: bool = False) -> bool:
    """Return whether the last output has a gradient to the first input, in 64 bits."""
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(1, distance + 1, d_model, generator=generator, dtype=torch.double)
    x.requires_grad_()
    source, target = (-1, 0) if back else (0, -1)
    with torch.enable_grad():
        (gradient,) = torch.autograd.grad(layer.double()(x)[0, target].sum(), x)
    return bool((gradient[0, source] != 0).any())


def path_length(
    hops: Callable[[int, int], nn.Module], distance: int, d_model: int = 4, seed: int = 0
) -> int:
    """Find the least number of hops by which a gradient crosses a distance."""

    def crosses(depth: int) -> bool:
        torch.manual_seed(seed)
        return reaches(hops(depth, d_model), distance, d_model)

    few, many = 0, 1  # few hops do not suffice, many might
    while not crosses(many):
        if many > distance:
            raise ValueError(f"{many} hops do not cross a distance of {distance}")
        few, many = many, min(2 * many, distance + 1)
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if crosses(middle) else (middle, many)
    return many
