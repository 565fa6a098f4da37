"""Attention Is All You Need, rebuilt: the model, its data, training and translation.

    >>> from transformer import Translator
    >>> Translator.from_pretrained("tatoeba-en-de")(["A sentence."])

The names below are loaded on first use, so that `import transformer` alone does not load torch.
"""

import sys
import warnings
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformer.data.corpora import load_corpus
    from transformer.data.tokenizer import Tokenizer
    from transformer.inference.decoding import beam_search, greedy_search
    from transformer.inference.options import SearchOptions
    from transformer.inference.translator import Translator
    from transformer.model.config import TransformerConfig
    from transformer.model.transformer import Transformer
    from transformer.training.config import TrainingConfig
    from transformer.training.trainer import Trainer

__version__ = "0.1.0"

# pip checks both, but not for a checkout or for the kernel of another environment.
_PYTHON = (3, 11)
# What every model needs. The rest (accelerate, sacrebleu, ...) may be missing until it is used.
_NEEDS = ("huggingface_hub", "jaxtyping", "numpy", "safetensors", "tokenizers", "torch", "tqdm")


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
        raise _missing("transformer", missing)


def _missing(user: str, libraries: "list[str]") -> ModuleNotFoundError:
    return ModuleNotFoundError(
        f"{user} needs {', '.join(libraries)}, which this Python does not have: "
        f"{sys.executable}. Install what is missing there: {sys.executable} -m pip install "
        f"{' '.join(libraries)}. In a notebook: run the first cell, or choose the kernel of the "
        "environment in which the package was installed.",
        name=libraries[0],
    )


_check_environment()

if "ipykernel.zmqshell" in sys.modules:
    # In a notebook without ipywidgets tqdm warns on import; its text bars work without.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="IProgress not found")
        import_module("tqdm.auto")

_HOMES = {
    "SearchOptions": "transformer.inference.options",
    "Tokenizer": "transformer.data.tokenizer",
    "Trainer": "transformer.training.trainer",
    "TrainingConfig": "transformer.training.config",
    "Transformer": "transformer.model.transformer",
    "TransformerConfig": "transformer.model.config",
    "Translator": "transformer.inference.translator",
    "beam_search": "transformer.inference.decoding",
    "greedy_search": "transformer.inference.decoding",
    "load_corpus": "transformer.data.corpora",
}

__all__ = [
    "SearchOptions",
    "Tokenizer",
    "Trainer",
    "TrainingConfig",
    "Transformer",
    "TransformerConfig",
    "Translator",
    "__version__",
    "beam_search",
    "greedy_search",
    "load_corpus",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = getattr(import_module(_HOMES[name]), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith(__name__):
            raise
        raise _missing(f"{__name__}.{name}", [error.name]) from None
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
