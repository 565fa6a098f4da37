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
    from transformer.data.batching import Batch as Batch
    from transformer.data.batching import EncodedPairs as EncodedPairs
    from transformer.data.batching import TokenBatches as TokenBatches
    from transformer.data.batching import encode_pairs as encode_pairs
    from transformer.data.corpora import corpus_from_files as corpus_from_files
    from transformer.data.corpora import load_corpus as load_corpus
    from transformer.data.corpora import load_parallel_files as load_parallel_files
    from transformer.data.parallel import Corpus as Corpus
    from transformer.data.parallel import Split as Split
    from transformer.data.tokenizer import Tokenizer as Tokenizer

_NAMES = {
    "batching": ("Batch", "EncodedPairs", "TokenBatches", "encode_pairs"),
    "corpora": ("corpus_from_files", "load_corpus", "load_parallel_files"),
    "parallel": ("Corpus", "Split"),
    "tokenizer": ("Tokenizer",),
}


def __getattr__(name: str) -> Any:
    for module, names in _NAMES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
