"""Attention Is All You Need, rebuilt: the model, its data, training and translation.

    >>> from transformer import Translator
    >>> Translator.from_pretrained("tatoeba-en-de")(["A sentence."])

The names below are loaded on first use, so that `import transformer` alone does not load torch.
"""

import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__version__ = "0.1.0"

# pip checks both, but not for a checkout or for the kernel of another environment.
_PYTHON = (3, 11)
_NEEDS = (
    "accelerate",
    "filelock",
    "huggingface_hub",
    "jaxtyping",
    "numpy",
    "sacrebleu",
    "safetensors",
    "tokenizers",
    "torch",
    "tqdm",
    "typer",
)


def _check_environment() -> None:
    """Raise an error that says what to install if this Python cannot run the package."""
    if sys.version_info < _PYTHON:
        raise ImportError(
            f"transformer needs Python {_PYTHON[0]}.{_PYTHON[1]} or newer, and this is "
            f"{sys.version.split()[0]}: {sys.executable}. Make an environment with a newer one, "
            "and in a notebook choose its kernel."
        )
    missing = [name for name in _NEEDS if name not in sys.modules and find_spec(name) is None]
    if missing:
        raise ModuleNotFoundError(
            f"transformer needs {', '.join(missing)}, which this Python does not have: "
            f"{sys.executable}. Install what is missing there: {sys.executable} -m pip install "
            f"{' '.join(missing)}. In a notebook: run the first cell, or choose the kernel of the "
            "environment in which the package was installed.",
            name=missing[0],
        )


_check_environment()

# In a notebook without ipywidgets tqdm warns on import; its text bars work without.
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
