"""Files of a run: weights, the state to go on from, and the mean of several weights.

Every file is written under another name first and then renamed, so that a file which exists is
whole, whenever the program was stopped.

Paper: section 6.1 (averaging)
"""

import errno
import os
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from transformer.data.tokenizer import Tokenizer
from transformer.model.interface import StoredModel
from transformer.model.manifest import require_unchanged, write_manifest
from transformer.model.transformer import Transformer
from transformer.model.weight_file import CHECKSUM, checksum, read_weight_file

# Of a trained model.
_FILES = ("config.json", "model.safetensors", "tokenizer.json")

# What can be done about the commonest reasons why a file cannot be written.
_FULL = dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "; make room and try again")
_CLOSED = dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "; choose another folder")


def write_atomically(path: Path, write: Callable[[Path], Any]) -> None:
    """Let ``write`` fill a neighbouring file, then rename it to ``path``.

    Args:
        path: the file to make or replace.
        write: is called with the temporary path.

    Raises:
        OSError: if the disk is full or the folder cannot be written. ``path`` is then as before.
            The message says what can be done.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(temporary)
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except (OSError, RuntimeError, SafetensorError) as error:
        # Of a full disk torch only says that a position is wrong; the cause is in the context.
        cause = error.__context__ if isinstance(error.__context__, OSError) else error
        raise cannot_write(path, cause) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def cannot_write(path: Path, cause: Exception) -> OSError:
    """Make the error that says why a file was not written, and what to do about it.

    Args:
        path: of the file.
        cause: what happened.

    Returns:
        The error, in one line.
    """
    reason = getattr(cause, "strerror", None) or cause
    advice = (_FULL | _CLOSED).get(getattr(cause, "errno", None) or 0, "")
    return OSError(f"cannot write {path}: {reason}{advice}")


def remove_unfinished(folder: Path) -> None:
    """Remove what a killed process had begun to write into ``folder``."""
    for temporary in folder.glob(".*.tmp"):
        temporary.unlink()


def save_weights(weights: dict[str, Tensor], path: Path | str) -> None:
    """Write weights as safetensors.

    Raises:
        OSError: if that is not possible; a file that was there stays.
    """
    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
    # One entry only: the library writes several in any order, and equal weights as unequal files.
    metadata = {CHECKSUM: checksum(contiguous)}
    write_atomically(Path(path), lambda p: save_file(contiguous, p, metadata=metadata))


def load_weights(path: Path | str) -> dict[str, Tensor]:
    """Read weights written by :func:`save_weights`, and compare them with their checksum.

    Raises:
        ValueError: if the file is damaged, be it by one bit.
        FileNotFoundError: if there is none.
    """
    if not Path(path).is_file():
        raise FileNotFoundError(f"no weights at {path}")
    return read_weight_file(path)


def average_checkpoints(paths: Sequence[Path | str]) -> dict[str, Tensor]:
    """Return the mean of the weights in several files.

    Args:
        paths: weight files of one and the same model; the paper takes the last 5 or 20.

    Raises:
        ValueError: if there is no file, or the files are not of one model.

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
    model: StoredModel, tokenizer: Tokenizer, folder: Path | str, half: bool = False
) -> Path:
    """Write a folder that :func:`load_pretrained`, ``Translator`` and the Hub understand.

    Of another model than the Transformer, its class reads the weights: ``from_pretrained(folder)``.

    Args:
        model: the model.
        tokenizer: the tokenizer it was trained with.
        folder: made if it does not exist; files in it are replaced, except a model card.
        half: store the weights as float16, half the size.

    Returns:
        The folder.

    Raises:
        ValueError: if model and tokenizer differ in vocabulary.
        OSError: if a file cannot be written; files that were there stay.
    """
    folder = Path(folder)
    if tokenizer.vocab_size != model.config.vocab_size:
        raise ValueError(
            f"tokenizer has {tokenizer.vocab_size} tokens, the model {model.config.vocab_size}"
        )
    folder.mkdir(parents=True, exist_ok=True)
    try:
        # All files are written elsewhere first, so that a full disk leaves the old ones in place.
        with TemporaryDirectory(dir=folder, prefix=".saving-") as unfinished:
            model.save_pretrained(unfinished)
            if half:
                weights = {name: w.half() for name, w in model.state_dict().items()}
                save_weights(weights, Path(unfinished) / "model.safetensors")
            tokenizer.save(Path(unfinished) / "tokenizer.json")
            write_manifest(unfinished, *_FILES)
            # Should the program be stopped between two files, the checksums tell the next one.
            for file in Path(unfinished).iterdir():
                if file.name != "README.md" or not (folder / file.name).exists():
                    os.replace(file, folder / file.name)
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
    """Write what a run needs to go on: tensors, numbers, strings, lists and dicts of them.

    Raises:
        OSError: if that is not possible; a file that was there stays.
    """

    def write(temporary: Path) -> None:
        with open(temporary, "wb") as file:  # torch's own writer hides why a write failed
            torch.save(state, file)

    write_atomically(Path(path), write)


def load_state(path: Path | str) -> dict[str, Any]:
    """Read a state written by :func:`save_state`. No code in the file is ever run.

    Raises:
        ValueError: if the file is damaged, be it by one bit, or holds anything but data.
        FileNotFoundError: if there is none.
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
    """Compare every part of torch's archive with its checksum, which torch itself does not."""
    with zipfile.ZipFile(path) as archive:
        # torch packs nothing; what unpacks to more than the file has would fill the memory.
        if sum(part.file_size for part in archive.infolist()) > path.stat().st_size:
            raise ValueError("it claims to hold more than it does")
        damaged = archive.testzip()
    if damaged is not None:
        raise ValueError(f"{damaged} in it is not that of its checksum")


def get_random_state(device: torch.device) -> list[Tensor]:
    """Return the state of the random numbers that training on ``device`` draws.

    Returns:
        Bytes of shape (size of the state,): the CPU's, and a GPU's if it is one.
    """
    states = [torch.get_rng_state()]
    if device.type == "cuda":
        states.append(torch.cuda.get_rng_state(device))
    return states


def set_random_state(states: list[Tensor], device: torch.device) -> None:
    """Put back what :func:`get_random_state` returned."""
    torch.set_rng_state(states[0])
    if len(states) > 1:
        torch.cuda.set_rng_state(states[1], device)
