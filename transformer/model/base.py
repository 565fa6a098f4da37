"""What every translation model offers: the Transformer and the models it is compared with."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer.saving.hub import HubModel


class TranslationModel(nn.Module, HubModel, ABC):
    """An encoder and a decoder that share a vocabulary: token ids in, logits out.

    Training calls :meth:`encode` and :meth:`decoder_states` and multiplies the states by
    ``output_weight`` only where there is a token to predict. Searches call
    :meth:`start_decoding` and :meth:`decode_next`.

    Batches are padded at the end of each row, and no source row is all padding. Row r of a search
    belongs to sentence r // beam_size.

    ``config`` is a frozen dataclass with at least ``vocab_size``, ``d_model``, ``pad_id``,
    ``bos_id``, ``eos_id`` and ``to_dict()``. To be saved and loaded, a subclass must name it in its
    own ``__init__(self, config: MyConfig)``.

    Paper: section 3, Figure 1
    """

    #: Checksum of the tokenizer whose ids the model works with; None while it has met none.
    tokenizer_checksum: str | None = None

    def __init__(self, config: Any):
        super().__init__()
        self.config = config

    def forward(
        self, source: Int[Tensor, "B S"], target: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T V"]:
        """Return the logits of the token after each position of a target; ``bos_id`` is its first.

        Raises:
            ValueError: if an id is out of range (on the CPU), or a sequence is too long.
        """
        return self.decode(target, self.encode(source), source)

    @abstractmethod
    def encode(self, source: Int[Tensor, "B S"]) -> Float[Tensor, "B S features"]:
        """Turn source ids into one vector per position, the decoder's memory."""

    def decode(
        self,
        target: Int[Tensor, "B T"],
        memory: Float[Tensor, "B S features"],
        source: Int[Tensor, "B S"],
    ) -> Float[Tensor, "B T V"]:
        """Return the logits at every target position, given the memory of the source ids."""
        return self.logits(self.decoder_states(target, memory, source))

    @abstractmethod
    def decoder_states(
        self,
        target: Int[Tensor, "B T"],
        memory: Float[Tensor, "B S features"],
        source: Int[Tensor, "B S"],
    ) -> Float[Tensor, "B T d_model"]:
        """Run the decoder without its output projection; arguments as in :meth:`decode`."""

    @property
    @abstractmethod
    def output_weight(self) -> Float[Tensor, "V d_model"]:
        """The matrix of the pre-softmax linear transformation."""

    def logits(self, states: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch V"]:
        """Multiply decoder states by the output projection."""
        return F.linear(states, self.output_weight)

    @abstractmethod
    def start_decoding(
        self, source: Int[Tensor, "n S"], max_length: int, beam_size: int = 1
    ) -> Any:
        """Encode the source and return the state of a search with ``beam_size`` rows per sentence.

        ``state.reorder(rows)`` makes row i continue the sequence of row ``rows[i]``. A sentence
        whose rows are all left out leaves the batch; its number may go to another. If none
        leaves, rows on a GPU must stay with their sentences.
        """

    @abstractmethod
    def decode_next(self, tokens: Int[Tensor, "rows"], state: Any) -> Float[Tensor, "rows V"]:
        """Feed the newest token of each row and return the logits of the one after it."""

    @property
    def longest(self) -> int | None:
        """Most tokens of a sequence, set by learned positions; None for no limit."""
        learned = getattr(self.config, "positions", None) == "learned"
        return self.config.max_length if learned else None

    def num_parameters(self) -> int:
        """Count the parameters, a shared matrix once."""
        return sum(parameter.numel() for parameter in self.parameters())


# How many open evaluation_mode blocks, of all threads, hold a module that was in training mode.
_HELD: dict[nn.Module, int] = {}
_HELD_LOCK = Lock()


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Switch dropout off, and restore each module's mode afterwards.

    Several threads may do so with one model: the last block to end restores it. None of them may
    train the model meanwhile.
    """
    with _HELD_LOCK:
        held = [module for module in model.modules() if module.training or module in _HELD]
        _HELD.update((module, _HELD.get(module, 0) + 1) for module in held)
        if held:
            model.eval()
    try:
        yield
    finally:
        with _HELD_LOCK:
            for module in held:
                _HELD[module] -= 1
                if not _HELD[module]:
                    del _HELD[module]
                    module.training = True
