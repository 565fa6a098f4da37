"""Files of a run: weights, the state to resume from, and averaged weights.

All are written atomically: a file that exists is complete, even after the program was killed.
"""

import errno
import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transformer.saving.files import read_weight_file, write_atomically
from transformer.saving.hub import write_weights

# What loads without running code.
_LOADABLE = (str, int, float, bool, type(None))


def remove_unfinished(folder: Path) -> None:
    """Remove the unfinished files that a killed process left in ``folder``."""
    for temporary in folder.glob(".*.tmp"):
        temporary.unlink()


def save_weights(weights: dict[str, Tensor], path: Path | str) -> None:
    """Write weights as safetensors; if that fails with an OSError, an existing file stays."""
    write_weights(Path(path), weights)


def load_weights(path: Path | str) -> dict[str, Tensor]:
    """Read weights of :func:`save_weights`; ValueError if even one bit of them is damaged."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"no weights at {path}")
    return read_weight_file(path)


def average_checkpoints(paths: Sequence[Path | str]) -> dict[str, Tensor]:
    """Average the weights in several files.

    Args:
        paths: weight files of the same model; the paper takes the last 5 or 20.

    Returns:
        The means by name, computed in float64 and returned as float32.

    Raises:
        ValueError: if ``paths`` is empty, a file is damaged, or the files belong to different
            models.
        FileNotFoundError: if a file does not exist.

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
    """Raise TypeError if :func:`load_state` would refuse a value, or one in it."""
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
