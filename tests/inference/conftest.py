"""A model without weights, for searches whose every number can be checked by hand."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from transformer.model.base import TranslationModel

PAD, BOS, EOS = 0, 1, 2


class SearchOnly(TranslationModel):
    """A model for searches; it cannot be trained."""

    encode = decoder_states = output_weight = None


class TableModel(SearchOnly):
    """Random logits that depend on the source's tokens and on all tokens produced so far.

    It checks how the search calls it. `rows_seen` records how many rows each step computed.
    """

    def __init__(self, vocab_size: int, seed: int, scale: float = 2.0, eos_bonus: float = 0.0):
        super().__init__(SimpleNamespace(vocab_size=vocab_size, pad_id=PAD, bos_id=BOS, eos_id=EOS))
        self.seed, self.scale, self.eos_bonus = seed, scale, eos_bonus
        self.rows_seen: list[int] = []

    def logits(self, source: tuple[int, ...], prefix: tuple[int, ...]) -> np.ndarray:
        generator = np.random.default_rng([self.seed, *source, 10_000, *prefix])
        logits = generator.normal(scale=self.scale, size=self.config.vocab_size)
        logits[EOS] += self.eos_bonus
        return logits.astype(np.float32)

    def log_probabilities(self, source: tuple[int, ...], prefix: tuple[int, ...]) -> np.ndarray:
        logits = self.logits(source, prefix).astype(np.float64)
        return logits - np.log(np.exp(logits).sum())

    def start_decoding(self, source, max_length, beam_size=1):
        sources = [tuple(t for t in row if t != PAD) for row in source.tolist()]
        return TableState([s for s in sources for _ in range(beam_size)], beam_size, max_length)

    def decode_next(self, tokens, state):
        assert not self.training
        assert len(tokens) == len(state.prefixes)
        state.prefixes = [
            (*prefix, token) for prefix, token in zip(state.prefixes, tokens.tolist(), strict=True)
        ]
        assert len(state.prefixes[0]) <= state.max_length
        self.rows_seen.append(len(tokens))
        rows = zip(state.sources, state.prefixes, strict=True)
        # The prefix without BOS, which every row must have been given first.
        assert all(prefix[0] == BOS for prefix in state.prefixes)
        return torch.from_numpy(np.stack([self.logits(s, prefix[1:]) for s, prefix in rows]))


class TableState:
    def __init__(self, sources, beam_size, max_length):
        self.sources, self.beam_size, self.max_length = sources, beam_size, max_length
        self.prefixes = [()] * len(sources)

    def reorder(self, rows):
        rows = rows.tolist()
        groups = [row // self.beam_size for row in rows]
        firsts = groups[:: self.beam_size]
        assert groups == [g for g in firsts for _ in range(self.beam_size)]
        assert len(firsts) == len(set(firsts))
        # A row moves only to the place of one that leaves.
        assert all(g == i or g >= len(firsts) for i, g in enumerate(firsts))
        self.sources = [self.sources[row] for row in rows]
        self.prefixes = [self.prefixes[row] for row in rows]


class WithoutCache(SearchOnly):
    """A real model that reads the whole prefix again at every step."""

    def __init__(self, model):
        super().__init__(model.config)
        self.model = model

    def start_decoding(self, source, max_length, beam_size=1):
        state = WithoutCacheState()
        state.source = source.repeat_interleave(beam_size, dim=0)
        state.prefix = source.new_empty(len(state.source), 0)
        return state

    def decode_next(self, tokens, state):
        state.prefix = torch.cat([state.prefix, tokens[:, None]], dim=1)
        memory = self.model.encode(state.source)
        return self.model.decode(state.prefix, memory, state.source)[:, -1]


class WithoutCacheState:
    def reorder(self, rows):
        self.source, self.prefix = self.source[rows], self.prefix[rows]


@pytest.fixture(scope="session")
def without_cache():
    return WithoutCache


@pytest.fixture(scope="session")
def table_model():
    return TableModel


@pytest.fixture(scope="session")
def small_transformer():
    """A real model with random weights, sharp enough that its choices differ."""
    from transformer.model.config import TransformerConfig
    from transformer.model.transformer import Transformer

    def make(vocab_size: int = 23, seed: int = 0, **changes) -> Transformer:
        torch.manual_seed(seed)
        sizes = dict(d_model=16, d_ff=32, num_heads=2, num_layers=2, dropout=0.1, sharing="none")
        model = Transformer(TransformerConfig(vocab_size=vocab_size, **(sizes | changes)))
        with torch.no_grad():
            model.output_weight.mul_(4.0)
        return model

    return make


@pytest.fixture(scope="session")
def pad_rows():
    def pad(rows: list[list[int]], extra: int = 0) -> torch.Tensor:
        width = max(map(len, rows)) + extra
        return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])

    return pad
