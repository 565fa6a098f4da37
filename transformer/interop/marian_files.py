"""The files of a Marian model as Hugging Face keeps them: found, downloaded, read."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import snapshot_download
from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError
from safetensors.torch import load_file
from torch import Tensor

CONFIG, SOURCE_PIECES, TARGET_PIECES = "config.json", "source.spm", "target.spm"
VOCABULARY, TARGET_VOCABULARY = "vocab.json", "target_vocab.json"
WEIGHTS, PICKLE = "model.safetensors", "pytorch_model.bin"
NEEDED = (CONFIG, SOURCE_PIECES, TARGET_PIECES, VOCABULARY)


def locate_marian(name_or_path: str | Path) -> Path:
    """Find the folder of a Marian model, or download it.

    Args:
        name_or_path: a folder, or a Hub id such as "Helsinki-NLP/opus-mt-en-de". A ``Path`` is only
            ever taken for a folder. Downloads are kept in the Hub's cache; the pickle is downloaded
            only where there are no safetensors.

    Returns:
        A folder that has all files.

    Raises:
        FileNotFoundError: if there is no such folder or repository, if it lacks a file, or if the
            Hub cannot be reached and has nothing in the cache.
    """
    name, folder = str(name_or_path), Path(name_or_path)
    if not folder.is_dir():
        if isinstance(name_or_path, Path):
            raise FileNotFoundError(f"no folder {name!r}")
        folder = _download(name)
    missing = [file for file in NEEDED if not (folder / file).is_file()]
    if not any((folder / file).is_file() for file in (WEIGHTS, PICKLE)):
        missing.append(f"{WEIGHTS} (or {PICKLE})")
    if missing:
        raise FileNotFoundError(f"{name!r} is no Marian model: {', '.join(missing)} missing")
    return folder


def read_json(path: Path) -> dict[str, Any]:
    """Read a file that holds one JSON object.

    Raises:
        ValueError: if it does not.
    """
    value = _read(path, lambda path: json.loads(path.read_text(encoding="utf-8")))
    if not isinstance(value, dict):
        raise ValueError(f"{path.name} must hold one object, it does not")
    return value


def read_weights(folder: Path) -> dict[str, Tensor]:
    """Read all tensors of a folder, on the CPU in float32.

    Safetensors are preferred. Most OPUS-MT repositories have only a pickle; it is opened with
    ``torch.load(weights_only=True)``, which makes tensors and runs no code.

    Raises:
        ValueError: if the file is damaged or holds something else, or if a pickle would have to be
            opened with a PyTorch older than 2.6, in which ``weights_only`` was not safe
            (CVE-2025-32434).
    """
    if (folder / WEIGHTS).is_file():
        tensors = _read(folder / WEIGHTS, load_file)
    elif torch.__version__ < "2.6":
        raise ValueError(
            f"{PICKLE} is only read with PyTorch 2.6 or newer, got {torch.__version__}; "
            f"or save the model as safetensors"
        )
    else:
        tensors = _read(folder / PICKLE, _load_pickle)
    return {name: tensor.float() for name, tensor in tensors.items()}


def _load_pickle(path: Path) -> dict[str, Tensor]:
    tensors = torch.load(path, map_location="cpu", weights_only=True)
    if not isinstance(tensors, dict) or not all(isinstance(t, Tensor) for t in tensors.values()):
        raise ValueError("it holds something else than named tensors")
    return tensors


def _read(path: Path, reader: Callable[[Path], Any]) -> Any:
    try:
        return reader(path)
    except Exception as error:  # whatever a damaged file does to the library that reads it
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{path.name} does not read: {reason}") from None


def _download(name: str) -> Path:
    unknown = f"no Marian model {name!r}: neither a folder nor"
    if name.count("/") != 1:
        raise FileNotFoundError(f"{unknown} a Hub id like 'owner/name'")
    try:
        wanted = [*NEEDED, TARGET_VOCABULARY, WEIGHTS]
        folder = Path(snapshot_download(name, allow_patterns=wanted))
        if not (folder / WEIGHTS).is_file():
            folder = Path(snapshot_download(name, allow_patterns=[PICKLE]))
        return folder
    except (HFValidationError, RepositoryNotFoundError):
        raise FileNotFoundError(f"{unknown} on the Hugging Face Hub") from None
    except OSError as error:  # the Hub's errors and those of the network and the disk
        raise FileNotFoundError(
            f"{unknown} within reach on the Hugging Face Hub ({type(error).__name__})"
        ) from None
