"""The layers of Table 1, each able to run, and the path between two positions found by gradient.

Paper: section 4, Table 1
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer.lab.table_1.reach import Recurrence, self_attention

#: Width of the convolutions' kernels k, and of the neighbourhood r that restricted attention sees.
KERNEL, NEIGHBOURHOOD = 5, 17


class SelfAttention(nn.Module):
    """Self-attention with one head.

    Args:
        d_model: size of a vector.
        fused: let one kernel compute the weights block by block. If False they are written out.
        num_heads: number of heads.

    Paper: section 4, Table 1 (self-attention)
    """

    def __init__(self, d_model: int, fused: bool = False, num_heads: int = 1):
        super().__init__()
        self.attention, self.fused = self_attention(d_model, num_heads), fused

    def forward(self, x: Float[Tensor, "B T d_model"]) -> Float[Tensor, "B T d_model"]:
        """Let every position attend to every position.

        Paper: section 3.2
        """
        return self.attention(x, maps=None if self.fused else [])


class RestrictedAttention(nn.Module):
    """Self-attention with one head in which a position sees its neighbours alone.

    Each position has a window of keys of its own, so that a score that is not wanted is not
    computed. A mask over all scores gives the same output and saves nothing.

    Args:
        d_model: size of a vector.
        neighbourhood: width r of the window, an odd number: (r - 1) / 2 positions to either side.

    Raises:
        ValueError: if ``neighbourhood`` is even.

    Paper: section 4, Table 1 (self-attention, restricted)
    """

    def __init__(self, d_model: int, neighbourhood: int = NEIGHBOURHOOD):
        super().__init__()
        if neighbourhood % 2 == 0:
            raise ValueError(f"neighbourhood must be odd, to have a middle, got {neighbourhood}")
        self.attention, self.neighbourhood = self_attention(d_model), neighbourhood

    def forward(self, x: Float[Tensor, "B T d_model"]) -> Float[Tensor, "B T d_model"]:
        """Let every position attend to its window.

        Paper: section 4
        """
        query, key, value = self.attention.in_projection(x).chunk(3, dim=-1)
        key, value = self._windows(key), self._windows(value)
        scores = query.unsqueeze(-2) @ key / query.size(-1) ** 0.5  # (B, T, 1, r)
        exists = self._windows(x.new_ones(1, x.size(1), 1)) > 0  # no neighbours beyond the ends
        weights = scores.masked_fill(~exists, -torch.inf).softmax(dim=-1)
        return self.attention.out_projection((weights @ value.mT).squeeze(-2))

    def mask(self, length: int) -> Bool[Tensor, "T T"]:
        """Make the mask with which full attention gives the same output; True = may attend.

        Paper: section 4
        """
        place = torch.arange(length)
        return (place[:, None] - place).abs() <= self.neighbourhood // 2

    def _windows(self, x: Tensor) -> Tensor:
        side = self.neighbourhood // 2
        return F.pad(x, (0, 0, side, side)).unfold(1, self.neighbourhood, 1)  # (B, T, d, r), a view


class Convolution(nn.Module):
    """One convolution along the sequence, with nothing after it.

    Args:
        d_model: number of channels.
        kernel: width k; an odd number, unless causal.
        gap: distance between the inputs that it takes; above 1 it is dilated.
        separable: first mix along the sequence, each channel for itself, then mix the channels at
            each position.
        causal: look at a position and what lies before it, and not to both sides.

    Raises:
        ValueError: if ``kernel`` is even and ``causal`` is False.

    Paper: section 4, Table 1 (convolutional)
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
        """Convolve; zeros stand before the first and after the last position.

        Paper: section 4
        """
        x = x.mT  # PyTorch wants the channels before the positions
        return self.layers(F.pad(x, (self.before, 0)) if self.before else x).mT


class Rounds(nn.Module):
    """A recurrence whose cell is applied to all positions at once, a number of times.

    In each round a position takes the state that its left neighbour had in the round before. A
    round is to a recurrence what a layer is to the others: one hop. After n rounds the states are
    those of the recurrence.

    Args:
        d_model: size of inputs and states.
        rounds: how many, at least 1.

    Paper: section 4, Table 1 (recurrent)
    """

    def __init__(self, d_model: int, rounds: int):
        super().__init__()
        self.cell, self.rounds = nn.RNNCell(d_model, d_model), rounds

    def forward(self, x: Float[Tensor, "B T d_model"]) -> Float[Tensor, "B T d_model"]:
        """Return the states after the last round.

        Paper: section 4
        """
        states = torch.zeros_like(x)
        for _ in range(self.rounds):
            last = F.pad(states, (0, 0, 1, 0))[:, :-1]
            states = self.cell(x.flatten(0, 1), last.flatten(0, 1)).view_as(x)
        return states


@dataclass(frozen=True)
class Row:
    """A row of Table 1, or a kind of layer that its text adds.

    Args:
        make: makes one layer of a size.
        hops: makes as many layers as it is told, one after the other, of a size.
        complexity: what the paper gives; n length, d size, k kernel, r neighbourhood.
        sequential: sequential operations that the paper gives.
        path: maximum path length that the paper gives.
        in_text: the paper gives it in the text beside the table.

    Paper: section 4, Table 1
    """

    make: Callable[[int], nn.Module]
    hops: Callable[[int, int], nn.Module]
    complexity: str
    sequential: str
    path: str
    in_text: bool = False


def _stack(make: Callable[[int], nn.Module]) -> Callable[[int, int], nn.Module]:
    return lambda depth, d_model: nn.Sequential(*(make(d_model) for _ in range(depth)))


def dilated(
    depth: int,
    d_model: int,
    kernel: int = KERNEL,
    growth: int | None = None,
    causal: bool = False,
) -> nn.Module:
    """Stack convolutions whose gaps grow by a factor from layer to layer.

    A causal window reaches k - 1 gaps back, so with a factor of k the reach of m layers is k^m - 1,
    without a hole. A window to both sides reaches (k - 1) / 2 gaps, and the factor that leaves no
    hole is (k + 1) / 2. With k, it would have to pass over positions beyond the ends of the
    sequence, which do not exist.

    Args:
        depth: number of layers.
        d_model: number of channels.
        kernel: width k; an odd number, unless causal.
        growth: the factor; if None, the largest by which any two positions connect.
        causal: look back, and not to both sides.

    Raises:
        ValueError: if ``kernel`` is even and ``causal`` is False.

    Paper: section 4, Table 1 (convolutional, dilated)
    """
    if growth is None:
        growth = kernel if causal else (kernel + 1) // 2
    return nn.Sequential(
        *(Convolution(d_model, kernel, growth**level, causal=causal) for level in range(depth))
    )


def _separable(d_model: int) -> Convolution:
    return Convolution(d_model, separable=True)


# The rows of Table 1 in its order, then the two kinds of convolution that the text adds.
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
    """Say whether the last output has a gradient with respect to the first input that is not 0.

    Computed with 64 bits: with 32, the gradient through a long recurrence is too small to be told
    from 0.

    Args:
        layer: maps (1, T, d_model) to (1, T, d_model). It is changed to 64 bits.
        distance: positions between the two, which are the ends of the sequence.
        d_model: size of a vector.
        back: ask for the first output and the last input instead.

    Paper: section 4 (path length)
    """
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
    """Find the least number of hops by which a gradient crosses a distance.

    Args:
        hops: makes that many layers of that size, one after the other, as ``Row.hops`` does.
        distance: positions between input and output, at least 1.
        d_model: size of a vector.
        seed: of the weights.

    Returns:
        The number m: with m hops the gradient is not 0, with m - 1 it is.

    Raises:
        ValueError: if distance + 1 hops do not suffice; a recurrence needs that many.

    Paper: section 4, Table 1 (maximum path length)
    """

    def crosses(depth: int) -> bool:
        torch.manual_seed(seed)
        return reaches(hops(depth, d_model), distance, d_model)

    few, many = 0, 1  # few hops do not suffice; many may
    while not crosses(many):
        if many > distance:
            raise ValueError(f"{many} hops do not cross a distance of {distance}")
        few, many = many, min(2 * many, distance + 1)
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if crosses(middle) else (middle, many)
    return many
