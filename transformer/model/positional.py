"""Positions: attention alone ignores the order of the tokens, so it is added to their vectors."""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

Layout = Literal["paper", "t2t"]


def sinusoidal_table(
    length: int, d_model: int, layout: Layout = "paper"
) -> Float[Tensor, "length d_model"]:
    """Compute sines and cosines of the position, with wavelengths in geometric progression.

    Args:
        length: number of positions, counted from 0.
        d_model: number of columns. If it is odd, the last sine of "paper" has no cosine, and the
            last column of "t2t" is 0.
        layout: "paper" puts sine and cosine of one wavelength side by side, with exponent
            2i / d_model. "t2t" is what the authors' code did: all sines, then all cosines, with
            exponent i / (d_model / 2 - 1), so that the longest wavelength is exactly 10000 * 2 pi.

    Paper: section 3.5
    """
    position = torch.arange(length, dtype=torch.float64)[:, None]
    table = torch.zeros(length, d_model, dtype=torch.float64)
    if layout == "paper":
        angle = position / 10_000 ** (torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)
        table[:, 0::2] = angle.sin()
        table[:, 1::2] = angle.cos()[:, : d_model // 2]
    elif layout == "t2t":
        half = d_model // 2
        exponent = torch.arange(half, dtype=torch.float64) / max(half - 1, 1)
        angle = position / 10_000**exponent
        table[:, :half], table[:, half : 2 * half] = angle.sin(), angle.cos()
    else:
        raise ValueError(f"layout must be 'paper' or 't2t', got {layout!r}")
    return table.float()


class SinusoidalPositionalEncoding(nn.Module):
    """Add fixed sinusoids to the embeddings. It has no parameters.

    The table is computed from the position, so that sequences may have any length: it grows on
    demand. ``DistributedDataParallel`` needs ``broadcast_buffers=False``, because the table of each
    process grows on its own.

    Args:
        d_model: size of a vector.
        length: positions to prepare in advance.
        layout: see :func:`sinusoidal_table`.

    Paper: section 3.5
    """

    table: Tensor

    def __init__(self, d_model: int, length: int = 1024, layout: Layout = "paper"):
        super().__init__()
        self.layout: Layout = layout
        table = sinusoidal_table(length, d_model, layout)
        self.register_buffer("table", table, persistent=False)

    def forward(
        self, x: Float[Tensor, "B T d_model"], start: int = 0
    ) -> Float[Tensor, "B T d_model"]:
        """Add the encodings of positions start .. start + T - 1."""
        return x + self.rows(start, start + x.size(1)).to(x.dtype)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> nn.Module:
        dtype = self.table.dtype
        super()._apply(fn, recurse)
        if self.table.dtype != dtype:  # half() and then float() would leave rounded numbers
            self.reset_parameters()
        return self

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Compute the table again, as after ``to_empty``: it is not part of the weights."""
        length, d_model = self.table.shape
        self.table.copy_(sinusoidal_table(length, d_model, self.layout))

    def rows(self, start: int, end: int) -> Float[Tensor, "positions d_model"]:
        """Return the encodings of positions start .. end - 1."""
        table = self.table  # another thread may replace it by one that is shorter
        if end > len(table):
            with torch.inference_mode(False):  # training may need the table after a search
                longer = sinusoidal_table(2 * end, table.size(1), self.layout)
                self.table = table = longer.to(table)
        return table[start:end]


class LearnedPositionalEmbedding(nn.Module):
    """Add a learned vector to each of the first ``length`` positions: row (E) of Table 3.

    Paper: section 3.5, Table 3 row (E)
    """

    def __init__(self, d_model: int, length: int = 1024):
        super().__init__()
        self.embedding = nn.Embedding(length, d_model)

    def forward(
        self, x: Float[Tensor, "B T d_model"], start: int = 0
    ) -> Float[Tensor, "B T d_model"]:
        """Add the vectors of positions start .. start + T - 1; ValueError if one has none."""
        end, length = start + x.size(1), self.embedding.num_embeddings
        if end > length:
            raise ValueError(f"sequence length {end} exceeds the {length} learned positions")
        return x + self.embedding.weight[start:end].to(x.dtype)


class RotaryPositions(nn.Module):
    """Rotate queries and keys by angles that grow with their position; add nothing to the input.

    A pair of features is a point in the plane. At position p it is rotated by p times the pair's
    frequency; the frequencies are those of the sinusoids. The product of a rotated query and a
    rotated key depends only on the distance between them.

    Raises:
        ValueError: if ``size``, that of a query or key, is odd: rotation needs pairs of features.

    Reference: Su et al. 2021.
    """

    def __init__(self, size: int, length: int = 1024):
        super().__init__()
        if size % 2:
            raise ValueError(f"size must be even for rotary positions, got {size}")
        self.sinusoids = SinusoidalPositionalEncoding(size, length)

    def forward(
        self, x: Float[Tensor, "*batch T size"], start: int = 0
    ) -> Float[Tensor, "*batch T size"]:
        """Rotate vectors at positions start .. start + T - 1."""
        table = self.sinusoids.rows(start, start + x.size(-2)).to(x.dtype)
        sine, cosine = table[:, 0::2], table[:, 1::2]
        first, second = x[..., 0::2], x[..., 1::2]
        rotated = first * cosine - second * sine, first * sine + second * cosine
        return torch.stack(rotated, dim=-1).flatten(-2)


class NoPositions(nn.Module):
    """Add nothing: the model sees a bag of tokens, or positions enter elsewhere."""

    def forward(
        self, x: Float[Tensor, "B T d_model"], start: int = 0
    ) -> Float[Tensor, "B T d_model"]:
        """Return ``x`` as it is."""
        return x
