"""Recurrent rivals of the encoder, with the same inputs, outputs and about as many parameters."""

from typing import Any

from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer.model.attention import MultiHeadAttention
from transformer.model.masks import padding_mask
from transformer_book.studies.other_tasks.encoder_model import mean_of_sequence


class LSTMModel(nn.Module):
    """A bidirectional LSTM between an embedding and one answer per sequence or per position."""

    def __init__(
        self,
        inputs: nn.Module,
        d_model: int,
        outputs: int,
        each: bool = False,
        dropout: float = 0.0,
    ):
        super().__init__()
        self.inputs, self.each, self.dropout = inputs, each, nn.Dropout(dropout)
        self.recurrent: nn.RNNBase = nn.LSTM(d_model, d_model, batch_first=True, bidirectional=True)
        self.answer = nn.Linear(2 * d_model, outputs)

    def read(
        self, x: Int[Tensor, "B S"] | Float[Tensor, "B S features"]
    ) -> Float[Tensor, "B S both"]:
        """Return the states of both directions; ignore those at padding positions."""
        y = self.dropout(self.inputs(x))
        if x.is_floating_point():
            return self.dropout(self.recurrent(y)[0])
        lengths = (x != 0).sum(dim=1).clamp(min=1)
        packed = nn.utils.rnn.pack_padded_sequence(
            y, lengths, batch_first=True, enforce_sorted=False
        )
        states = self.recurrent(packed)[0]
        y = nn.utils.rnn.pad_packed_sequence(states, True, total_length=x.size(1))[0]
        return self.dropout(y)

    def forward(
        self, x: Int[Tensor, "B S"] | Float[Tensor, "B S features"]
    ) -> Float[Tensor, "B *positions outputs"]:
        """Answer for each sequence of a batch, or for each of its positions."""
        y = self.read(x)
        return self.answer(y if self.each else mean_of_sequence(y, x))


class AttentiveGRU(LSTMModel):
    """A bidirectional GRU with one self-attention layer above it, and a residual connection.

    Arguments as for :class:`LSTMModel`.
    """

    def __init__(self, inputs: nn.Module, d_model: int, outputs: int, **options: Any):
        super().__init__(inputs, d_model, outputs, **options)
        half = 3 * d_model // 4  # for about as many parameters as the others
        self.recurrent = nn.GRU(d_model, half, batch_first=True, bidirectional=True)
        self.attention = MultiHeadAttention(2 * half, num_heads=4)
        self.answer = nn.Linear(2 * half, outputs)

    def read(
        self, x: Int[Tensor, "B S"] | Float[Tensor, "B S features"]
    ) -> Float[Tensor, "B S both"]:
        """Return the states after the attention."""
        y = super().read(x)
        mask = None if x.is_floating_point() else padding_mask(x)
        return y + self.dropout(self.attention(y, mask=mask))


def count(model: nn.Module) -> int:
    """Count the parameters without those of ``inputs``, which are the same in all networks."""
    inner = {id(weight) for weight in model.get_submodule("inputs").parameters()}
    return sum(weight.numel() for weight in model.parameters() if id(weight) not in inner)
