"""Text, tokens and batches.

- :mod:`transformer.data.corpora`: parallel corpora by name, split into training and test text.
- :mod:`transformer.data.parallel`: splits, corpora, and any two aligned text files.
- :mod:`transformer.data.tokenizer`: byte-pair encoding shared by both languages.
- :mod:`transformer.data.batching`: batches by token budget, reproducible and resumable.

The names below are loaded on first use: reading text does not need torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformer.data.batching import Batch, EncodedPairs, TokenBatches, encode_pairs
    from transformer.data.corpora import corpus_from_files, load_corpus, load_parallel_files
    from transformer.data.parallel import Corpus, Split
    from transformer.data.tokenizer import Tokenizer

_HOMES = {
    "Batch": "batching",
    "Corpus": "parallel",
    "EncodedPairs": "batching",
    "Split": "parallel",
    "TokenBatches": "batching",
    "Tokenizer": "tokenizer",
    "corpus_from_files": "corpora",
    "encode_pairs": "batching",
    "load_corpus": "corpora",
    "load_parallel_files": "corpora",
}

__all__ = [
    "Batch",
    "Corpus",
    "EncodedPairs",
    "Split",
    "TokenBatches",
    "Tokenizer",
    "corpus_from_files",
    "encode_pairs",
    "load_corpus",
    "load_parallel_files",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
