"""A recurrent translator, with attention or with the fixed-length bottleneck that it removed.

It implements the methods that training and search call (``encode``, ``decoder_states``,
``output_weight``, ``start_decoding``, ``decode_next``), so everything that runs on the
Transformer runs on it too.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from transformer.model.attention import AdditiveAttention, masked_softmax
from transformer.model.base import TranslationModel
from transformer.model.masks import padding_mask
from transformer.settings import RATE, Settings, whole


@dataclass(frozen=True)
class RecurrentConfig(Settings):
    """Sizes of a :class:`RecurrentTranslator`.

    Raises:
        ValueError: if a size is not positive, the state's is odd, or ``dropout`` is outside [0, 1).
    """

    vocab_size: int  #: number of tokens V, source and target together
    d_model: int = 256  #: size of embeddings and of what the output matrix reads
    #: Size of the state, even, ``d_model`` if None; each direction of the encoder has half of it.
    d_hidden: int | None = None
    #: Whether the decoder attends to every source position at every step. False gives it one
    #: vector for the whole source, however long that is.
    attention: bool = True
    dropout: float = 0.0  #: on embeddings and on what the output matrix reads
    pad_id: int = 0
    bos_id: int = 1
    eos_id: int = 2

    _numbers = dict(dropout=RATE, **dict.fromkeys(("pad_id", "bos_id", "eos_id"), whole(0)))

    def __post_init__(self) -> None:
        super().__post_init__()
        name = "d_model" if self.d_hidden is None else "d_hidden"
        if getattr(self, name) % 2:
            raise ValueError(f"{name} must be even, got {getattr(self, name)}")


@dataclass
class RecurrentState:
    """The state of each row of a search: its hidden state and the source that it reads."""

    hidden: Float[Tensor, "rows d_hidden"]
    memory: Float[Tensor, "rows S d_hidden"]
    mask: Bool[Tensor, "rows 1 S"]
    keys: Float[Tensor, "rows S d_hidden"] | None = None  # the memory as attention's keys

    def reorder(self, rows: Int[Tensor, "kept"]) -> None:
        """Let row i continue the sequence that row ``rows[i]`` holds now."""
        self.hidden, self.memory = self.hidden[rows], self.memory[rows]
        self.mask = self.mask[rows]
        self.keys = None if self.keys is None else self.keys[rows]


class RecurrentTranslator(TranslationModel):
    """A bidirectional GRU reads the source, a GRU writes the target, one token after another.

    At each step the decoder gets the last token and a *context*. With attention, the context is a
    mean of all encoder states under weights that a small network computes from the decoder's last
    state: it is trained with the rest. Without, it is the encoder's two final states, the same at
    every step. All else is equal, so that the difference between the two is attention.

    Args:
        config: sizes, and whether to attend.

    Paper: sections 1 and 2 (recurrent encoder-decoders), 3.2.1 (additive attention)
    """

    architecture = "recurrent"

    def __init__(self, config: RecurrentConfig):
        super().__init__(config)
        d, hidden = config.d_model, config.d_hidden or config.d_model
        self.embedding = nn.Embedding(config.vocab_size, d)
        self.encoder = nn.GRU(d, hidden // 2, batch_first=True, bidirectional=True)
        self.first_state = nn.Linear(hidden, hidden)
        self.attention = AdditiveAttention(hidden, hidden, hidden) if config.attention else None
        self.cell = nn.GRUCell(d + hidden, hidden)
        self.readout = nn.Linear(2 * hidden + d, d)
        self.dropout = nn.Dropout(config.dropout)
        # As in our Transformer: rows of norm 1, since the matrix is the output projection too.
        nn.init.normal_(self.embedding.weight, std=d**-0.5)

    @property
    def output_weight(self) -> Float[Tensor, "V d_model"]:
        """The output projection, shared with the embeddings."""
        return self.embedding.weight

    def encode(self, source: Int[Tensor, "B S"]) -> Float[Tensor, "B S d_hidden"]:
        """Read the source in both directions; padding is not read and gets zeros."""
        lengths = (source != self.config.pad_id).sum(dim=1)
        packed = pack_padded_sequence(
            self._embed(source), lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        memory, _ = self.encoder(packed)
        return pad_packed_sequence(memory, batch_first=True, total_length=source.size(1))[0]

    def decoder_states(
        self,
        target: Int[Tensor, "B T"],
        memory: Float[Tensor, "B S d_hidden"],
        source: Int[Tensor, "B S"],
    ) -> Float[Tensor, "B T d_model"]:
        """Write the target with the true tokens as input: T steps, each waiting for the last."""
        state = self._state(memory, source)
        embedded = self._embed(target)
        steps = [self._advance(token, state) for token in embedded.unbind(dim=1)]
        hidden, context = (torch.stack(parts, dim=1) for parts in zip(*steps, strict=True))
        return self._read_out(hidden, context, embedded)

    def start_decoding(
        self, source: Int[Tensor, "n S"], max_length: int, beam_size: int = 1
    ) -> RecurrentState:
        """Encode the source for ``beam_size`` outputs of each sentence, of any length."""
        state = self._state(self.encode(source), source)
        state.reorder(torch.arange(len(source), device=source.device).repeat_interleave(beam_size))
        return state

    def decode_next(
        self, tokens: Int[Tensor, "rows"], state: RecurrentState
    ) -> Float[Tensor, "rows V"]:
        """Feed the newest token of each row and return the logits of the one after it."""
        embedded = self._embed(tokens)
        hidden, context = self._advance(embedded, state)
        return self.logits(self._read_out(hidden, context, embedded))

    def _embed(self, ids: Tensor) -> Tensor:
        return self.dropout(self.embedding(ids) * self.config.d_model**0.5)

    def _state(self, memory: Tensor, source: Tensor) -> RecurrentState:
        mask = padding_mask(source, self.config.pad_id)[:, 0]
        hidden = torch.tanh(self.first_state(self._summary(memory, mask)))
        keys = None if self.attention is None else self.attention.key_projection(memory)
        return RecurrentState(hidden, memory, mask, keys)

    def _summary(self, memory: Tensor, mask: Tensor) -> Tensor:
        """The state of each direction after it has read everything, side by side."""
        forward, backward = memory.chunk(2, dim=-1)
        last = mask.sum(dim=-1) - 1  # (rows, 1)
        end = forward.gather(1, last[..., None].expand(-1, -1, forward.size(-1)))[:, 0]
        return torch.cat([end, backward[:, 0]], dim=-1)

    def _advance(self, embedded: Tensor, state: RecurrentState) -> tuple[Tensor, Tensor]:
        if self.attention is None:
            context = self._summary(state.memory, state.mask)
        else:
            assert state.keys is not None  # where there is attention there are keys
            scores = self.attention.scores(state.hidden[:, None], state.keys)
            context = (masked_softmax(scores, state.mask) @ state.memory)[:, 0]
        state.hidden = self.cell(torch.cat([embedded, context], dim=-1), state.hidden)
        return state.hidden, context

    def _read_out(self, hidden: Tensor, context: Tensor, embedded: Tensor) -> Tensor:
        features = torch.cat([hidden, context, embedded], dim=-1)
        return self.dropout(torch.tanh(self.readout(features)))
