"""Files of a run: weights, the state to resume from, trained models, and averaged weights.

All are written atomically: a file that exists is complete, even after the program was killed.

Paper: section 6.1 (averaging)
"""

import errno
import io
import zipfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Unpack

import torch
from torch import Tensor

from transformer.data.tokenizer import Tokenizer, TokenizerLike, load_tokenizers, save_tokenizers
from transformer.model.base import TranslationModel
from transformer.model.files import (
    read_weight_file,
    write_atomically,
)
from transformer.model.hub import write_folder, write_weights
from transformer.model.pretrained import HubOptions, locate
from transformer.model.transformer import Transformer

# What loads without running code.
_LOADABLE = (str, int, float, bool, type(None))


def remove_unfinished(folder: Path) -> None:
    """Remove the unfinished files that a killed process left in ``folder``."""
    for temporary in folder.glob(".*.tmp"):
        temporary.unlink()


def save_weights(weights: dict[str, Tensor], path: Path | str) -> None:
    """Write weights as safetensors.

    Raises:
        OSError: if the file cannot be written; an existing one stays.
    """
    write_weights(Path(path), weights)


def load_weights(path: Path | str) -> dict[str, Tensor]:
    """Read weights written by :func:`save_weights`, and verify their checksum.

    Raises:
        ValueError: if even one bit of the file is damaged.
        FileNotFoundError: if there is no such file.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"no weights at {path}")
    return read_weight_file(path)


def average_checkpoints(paths: Sequence[Path | str]) -> dict[str, Tensor]:
    """Average the weights in several files.

    Args:
        paths: weight files of the same model; the paper takes the last 5 or 20.

    Raises:
        ValueError: if there is no file, or the files belong to different models.

    Paper: section 6.1
    """
    if not paths:
        raise ValueError("paths must name at least one checkpoint")
    total: dict[str, Tensor] = {}
    for path in paths:
        weights = load_weights(path)
        shapes = {name: tensor.shape for name, tensor in weights.items()}
        if not total:
            total = {name: torch.zeros_like(w, dtype=torch.float64) for name, w in weights.items()}
        elif shapes != {name: tensor.shape for name, tensor in total.items()}:
            raise ValueError(f"{path} holds another model than {paths[0]}")
        for name, tensor in weights.items():
            total[name] += tensor
    return {name: (tensor / len(paths)).float() for name, tensor in total.items()}


def save_pretrained(
    model: TranslationModel, tokenizer: TokenizerLike, folder: Path | str, half: bool = False
) -> Path:
    """Write a folder for :func:`load_pretrained`, ``Translator`` and the Hub.

    Args:
        model: the model.
        tokenizer: the tokenizer that it was trained with, of both languages. A translator with two
            tokenizers has a ``save_pretrained`` of its own.
        folder: made if it does not exist; files in it are replaced, except a model card.
        half: store the weights as float16, half the size.

    Returns:
        The folder.

    Raises:
        ValueError: if the vocabularies of model and tokenizer differ in size.
        OSError: if a file cannot be written; existing files stay.
    """
    if tokenizer.vocab_size != model.config.vocab_size:
        raise ValueError(
            f"tokenizer has {tokenizer.vocab_size} tokens, the model {model.config.vocab_size}"
        )
    tokenizers = partial(save_tokenizers, tokenizer, tokenizer, model_max_length=model.longest)
    return write_folder(folder, model, tokenizers, half=half)


def load_pretrained(
    name_or_path: Path | str, **options: Unpack[HubOptions]
) -> tuple[Transformer, Tokenizer]:
    """Load a Transformer and its tokenizer, as :func:`save_pretrained` wrote them.

    Args:
        name_or_path: a shipped name, a folder of a model or of a training run, a weight file, or a
            Hub id; see :func:`~transformer.model.pretrained.locate`.
        options: for a download from the Hub, such as ``revision``.

    Raises:
        FileNotFoundError: if there is no such model, or a file is missing.
        ValueError: if a file is damaged, the weights do not fit the configuration, or source and
            target have tokenizers of their own, for which there is ``Translator.from_pretrained``.
        TypeError: if an option is unknown.
    """
    location = locate(name_or_path, **options)
    model = Transformer.load(location)
    tokenizer, _ = load_tokenizers(location.folder)
    if not isinstance(tokenizer, Tokenizer):
        raise ValueError(
            f"{location.name!r} has two tokenizers; load it with Translator.from_pretrained"
        )
    return model, tokenizer


def save_state(state: dict[str, Any], path: Path | str) -> None:
    """Write what a run needs to resume: tensors, numbers, strings, lists and dicts of them.

    Raises:
        TypeError: if there is something else in it, which :func:`load_state` would refuse.
        OSError: if the file cannot be written; an existing one stays.
    """
    require_loadable(state, "state")

    def write(temporary: Path) -> None:
        with open(temporary, "wb") as file:  # given a path, torch hides why a write failed
            torch.save(state, file)

    write_atomically(Path(path), write)


def require_loadable(value: Any, name: str) -> None:
    """Raise TypeError if :func:`load_state` would refuse a value, or one in it.

    Args:
        value: a part of a state.
        name: of the value, for the message.
    """
    if isinstance(value, dict):
        for key, each in value.items():
            require_loadable(key, f"a key of {name}")
            require_loadable(each, f"{name}[{key!r}]")
    elif type(value) in (list, tuple):
        for i, each in enumerate(value):
            require_loadable(each, f"{name}[{i}]")
    elif type(value) not in _LOADABLE and not isinstance(value, Tensor):
        try:  # PyTorch allows a few more
            torch.save(value, file := io.BytesIO())
            file.seek(0)
            torch.load(file, weights_only=True)
        except Exception:
            kind = f"{type(value).__module__}.{type(value).__qualname__}"
            raise TypeError(
                f"{name} is a {kind}, which is not saved with a run; use tensors, numbers, "
                "strings, lists and dicts"
            ) from None


def load_state(path: Path | str) -> dict[str, Any]:
    """Read a state written by :func:`save_state`, without running any code in the file.

    Raises:
        ValueError: if even one bit of the file is damaged, or it holds anything but data.
        OSError: if the file does not exist or cannot be read.
        MemoryError: if memory runs out.
    """
    try:
        _require_whole_archive(Path(path))
        return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # zip, pickle and storage errors share no base class
        # The file may be whole. Only a damaged archive makes zipfile seek to an invalid place.
        if isinstance(error, OSError) and error.errno != errno.EINVAL:
            error.filename = error.filename or str(path)
            raise
        if isinstance(error, MemoryError) or "DefaultCPUAllocator" in str(error):
            raise MemoryError(f"not enough memory to load {path}") from None
        reason = " ".join(str(error).split())[:120]
        raise ValueError(f"{path} is not a whole checkpoint: {reason}") from None


def _require_whole_archive(path: Path) -> None:
    """Verify the checksum of every part of torch's archive, which torch itself does not."""
    with zipfile.ZipFile(path) as archive:
        # torch does not compress; a part that unpacks to more than the file could fill the memory.
        if sum(part.file_size for part in archive.infolist()) > path.stat().st_size:
            raise ValueError("it claims to hold more than it does")
        damaged = archive.testzip()
    if damaged is not None:
        raise ValueError(f"{damaged} in it does not match its checksum")
