"""Write files atomically, and detect damage by checksums of weights and settings.

Neither safetensors nor JSON has a checksum: without one, a bit that flips on a disk would be
loaded as another weight or another setting.
"""

import errno
import json
import os
import secrets
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

#: Name of the checksum in the header. Files of other programs have none; they are read unchecked.
CHECKSUM = "crc32"
#: Name of the file with the checksums. Folders of other programs lack it; they are read unchecked.
MANIFEST = "checksums.json"

# Advice for the most common reasons why a file cannot be written.
_FULL = dict.fromkeys((errno.ENOSPC, errno.EDQUOT, errno.EFBIG), "; make room and try again")
_CLOSED = dict.fromkeys((errno.EACCES, errno.EPERM, errno.EROFS), "; choose another folder")


def write_atomically(path: Path, write: Callable[[Path], Any]) -> None:
    """Let ``write`` fill a neighbouring file, then rename it to ``path``.

    The file's mode is that of any new file: 0666 without the bits of the umask.

    Args:
        path: the file to create or replace.
        write: called with the temporary path, where there is no file yet.

    Raises:
        OSError: if the disk is full or the folder cannot be written. ``path`` is then
            unchanged. The message says what to do.
    """
    # Not the process id: threads share it, and containers with a common disk may do so.
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.touch()
        mode = temporary.stat().st_mode  # what the umask leaves; safetensors would make it 0600
        temporary.unlink()  # Windows cannot rename onto a file
        write(temporary)
        temporary.chmod(mode)
        with open(temporary, "rb") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except (OSError, SafetensorError) as error:
        raise cannot_write(path, error) from error
    except RuntimeError as error:
        # On a full disk torch reports only a position; the cause is in the context.
        if not isinstance(error.__context__, OSError):
            raise
        raise cannot_write(path, error.__context__) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_json(path: Path, content: object, indent: int = 2) -> None:
    """Write JSON atomically, indented and in UTF-8; the errors are :func:`write_atomically`'s."""
    text = json.dumps(content, indent=indent, ensure_ascii=False) + "\n"
    write_atomically(path, lambda p: p.write_text(text, encoding="utf-8"))


def cannot_write(path: Path, cause: Exception) -> OSError:
    """Return the error that says in one line why a file was not written and what to do about it."""
    reason = getattr(cause, "strerror", None) or cause
    advice = (_FULL | _CLOSED).get(getattr(cause, "errno", None) or 0, "")
    return OSError(f"cannot write {path}: {reason}{advice}")


def checksum(weights: Mapping[str, Tensor]) -> str:
    """Compute the CRC-32 of names, types, shapes and numbers of tensors: 8 hexadecimal digits."""
    crc = 0
    for name in sorted(weights):
        tensor = weights[name].detach().cpu().contiguous()
        crc = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), crc)
        crc = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, crc)
    return f"{crc:08x}"


def read_weight_file(path: Path | str) -> dict[str, Tensor]:
    """Read all tensors of a safetensors file, by name, on the CPU.

    They are compared with the checksum in its header and with that in the manifest beside it,
    where there is one.

    Raises:
        ValueError: if the file is damaged, or is not the one that the manifest means.
        OSError: if it cannot be read.
    """
    path = Path(path)
    weights, own = _read(path)
    expected = {own, _manifest(path.parent).get(path.name)} - {None}
    if expected and expected != {checksum(weights)}:
        raise _changed(path)
    return weights


def _read(path: Path) -> tuple[dict[str, Tensor], str | None]:
    try:
        with safe_open(path, "pt") as file:
            own = (file.metadata() or {}).get(CHECKSUM)
            return {name: file.get_tensor(name) for name in file.keys()}, own  # noqa: SIM118
    except OSError:
        raise
    except Exception as error:  # torch itself raises on a damaged header
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{path} is not a whole safetensors file: {reason}") from None


def write_manifest(folder: Path | str, *names: str) -> None:
    """Write the checksums of files in a folder atomically, replacing earlier ones.

    The checksum of a JSON file is that of its content, whatever its line ends and blanks. Other
    files count byte by byte.
    """
    sums = {name: file_checksum(Path(folder) / name) for name in sorted(names)}
    write_json(Path(folder) / MANIFEST, sums)


def require_unchanged(folder: Path | str, *names: str) -> None:
    """Compare files in a folder with its manifest.

    A file that the manifest does not name passes, and without a manifest all files pass. For
    weights with a checksum of their own, only that is compared; reading them checks the content.

    Raises:
        ValueError: if a file is not as it was saved, or the manifest is damaged; the message names
            the file and says what to do.
        OSError: if a file cannot be read.
    """
    sums = _manifest(Path(folder))
    for name in names:
        if name in sums and sums[name] != file_checksum(Path(folder) / name):
            raise _changed(Path(folder) / name)


def _manifest(folder: Path) -> dict[str, Any]:
    path = folder / MANIFEST
    sums = read_json(path) if path.is_file() else {}
    if not isinstance(sums, dict):
        raise ValueError(f"{path} must hold checksums by file, got {sums!r:.60}; remove it")
    return sums


def _changed(path: Path) -> ValueError:
    return ValueError(
        f"{path} is not as it was saved: damaged, or changed by hand. Take a whole copy of the "
        f"folder; or, if the change is meant, remove its {MANIFEST}"
    )


def file_checksum(path: Path) -> str:
    """Compute the CRC-32 of a file: of its content if it is JSON, of its weights if it has any."""
    if path.suffix == ".json":
        content = json.dumps(read_json(path), sort_keys=True)
        return f"{zlib.crc32(content.encode()):08x}"
    if path.suffix != ".safetensors":
        return f"{zlib.crc32(path.read_bytes()):08x}"
    weights, own = _read(path)
    return own or checksum(weights)


def read_json(path: Path) -> Any:
    """Read JSON in UTF-8; raise ValueError if the file is damaged."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{path} is not valid JSON: {reason}") from None
