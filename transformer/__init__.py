"""Attention Is All You Need, rebuilt: the model, its data, training and translation.

    >>> from transformer import Translator
    >>> Translator.from_pretrained("tatoeba-en-de")(["A sentence."])

The names below are loaded when they are first used: `import transformer` alone does not wait for
torch.
"""

import warnings
from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# In a notebook without ipywidgets, a library below warns as soon as the model is imported. Our
# progress bars are of text, so there is nothing to be warned of.
warnings.filterwarnings("ignore", message="IProgress not found")

_HOMES = {
    "Transformer": "transformer.model.transformer",
    "TransformerConfig": "transformer.model.config",
    "Translator": "transformer.inference.translator",
    "load_corpus": "transformer.data.corpora",
    "load_pretrained": "transformer.training.checkpoint",
    "save_pretrained": "transformer.training.checkpoint",
}

__all__ = ["__version__", *_HOMES]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
