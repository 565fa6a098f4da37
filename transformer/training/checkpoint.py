"""Files of a run: weights, the state to resume from, trained models, and averaged weights.

All are written atomically: a file that exists is complete, even after the program was killed.

Paper: section 6.1 (averaging)
"""

import zipfile
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from transformer.data.tokenizer import Tokenizer
from transformer.model.base import TranslationModel
from transformer.model.files import (
    CHECKSUM,
    checksum,
    read_weight_file,
    require_unchanged,
    write_atomically,
    write_manifest,
)
from transformer.model.transformer import Transformer

# The files of a trained model.
_FILES = ("config.json", "model.safetensors", "tokenizer.json")


def remove_unfinished(folder: Path) -> None:
    """Remove the unfinished files that a killed process left in ``folder``."""
    for temporary in folder.glob(".*.tmp"):
        temporary.unlink()


def save_weights(weights: dict[str, Tensor], path: Path | str) -> None:
    """Write weights as safetensors.

    Raises:
        OSError: if the file cannot be written; an existing one stays.
    """
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
    # One entry only: the library writes several in random order, so files would differ.
    metadata = {CHECKSUM: checksum(contiguous)}
    write_atomically(Path(path), lambda p: save_file(contiguous, p, metadata=metadata))


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
    model: TranslationModel, tokenizer: Tokenizer, folder: Path | str, half: bool = False
) -> Path:
    """Write a folder for :func:`load_pretrained`, ``Translator`` and the Hub.

    To read a model other than the Transformer, call ``from_pretrained(folder)`` of its class.

    Args:
        model: the model.
        tokenizer: the tokenizer that it was trained with.
        folder: made if it does not exist; files in it are replaced, except a model card.
        half: store the weights as float16, half the size.

    Returns:
        The folder.

    Raises:
        ValueError: if the vocabularies of model and tokenizer differ in size.
        OSError: if a file cannot be written; existing files stay.
    """
    folder = Path(folder)
    if tokenizer.vocab_size != model.config.vocab_size:
        raise ValueError(
            f"tokenizer has {tokenizer.vocab_size} tokens, the model {model.config.vocab_size}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    try:
        # All files are written before the first is put in place: a full disk changes nothing.
        with TemporaryDirectory(dir=folder, prefix=".saving-") as unfinished:
            model.save_pretrained(unfinished)
            if half:
                weights = {name: w.half() for name, w in model.state_dict().items()}
                save_weights(weights, Path(unfinished) / "model.safetensors")
            tokenizer.save(Path(unfinished) / "tokenizer.json")
            write_manifest(unfinished, *_FILES)
            # If the program is killed between two files, the checksums reveal it.
            for file in Path(unfinished).iterdir():
                if file.name != "README.md" or not (folder / file.name).exists():
                    write_atomically(folder / file.name, file.rename)
    except SafetensorError as error:
        raise OSError(f"cannot write {folder}: {error}") from error
    return folder


def load_pretrained(folder: Path | str) -> tuple[Transformer, Tokenizer]:
    """Read a folder written by :func:`save_pretrained`.

    Raises:
        FileNotFoundError: if the folder lacks a file.
        ValueError: if a file is damaged or the weights do not fit the configuration.
    """
    folder = Path(folder)
    for name in _FILES:
        if not (folder / name).is_file():
            raise FileNotFoundError(f"{folder} holds no trained model: {name} is missing")
    model = Transformer.from_pretrained(folder)
    require_unchanged(folder, "tokenizer.json")
    return model, Tokenizer.load(folder / "tokenizer.json")


def save_state(state: dict[str, Any], path: Path | str) -> None:
    """Write what a run needs to resume: tensors, numbers, strings, lists and dicts of them.

    Raises:
        OSError: if the file cannot be written; an existing one stays.
    """

    def write(temporary: Path) -> None:
        with open(temporary, "wb") as file:  # given a path, torch hides why a write failed
            torch.save(state, file)

    write_atomically(Path(path), write)


def load_state(path: Path | str) -> dict[str, Any]:
    """Read a state written by :func:`save_state`, without running any code in the file.

    Raises:
        ValueError: if even one bit of the file is damaged, or it holds anything but data.
        FileNotFoundError: if there is no such file.
    """
    try:
        _require_whole_archive(Path(path))
        return torch.load(path, map_location="cpu", weights_only=True)
    except FileNotFoundError:
        raise
    except Exception as error:  # zip, pickle and storage errors share no base class
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
