"""A small file beside the files of a saved model, by which each of them notices its own damage.

JSON has no checksum: a digit that flips on a disk is read in silence as another setting.
"""

import json
import os
import zlib
from pathlib import Path

from safetensors import SafetensorError, safe_open

from transformer.model.weight_file import CHECKSUM, checksum, read_weight_file

#: Name of the file. A folder without it, as other programs write it, is read without.
MANIFEST = "checksums.json"


def write_manifest(folder: Path | str, *names: str) -> None:
    """Write down the checksums of files in a folder: all of it, in place of the former, or nothing.

    They are those of what the files hold: JSON with other line ends or blanks has the same one.
    Files of other kinds count byte by byte.

    Args:
        folder: where the files are.
        names: of the files.

    Raises:
        OSError: if a file cannot be read, or the manifest not written.
    """
    sums = {name: _checksum(Path(folder) / name) for name in sorted(names)}
    path = Path(folder) / MANIFEST
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        unfinished.write_text(json.dumps(sums, indent=2) + "\n", encoding="utf-8")
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def require_unchanged(folder: Path | str, *names: str) -> None:
    """Compare files in a folder with its manifest.

    A file that the manifest does not name passes, and so do all where there is no manifest. Of
    weights with a checksum of their own only this is compared, reading them does the rest.

    Args:
        folder: where the files are.
        names: of the files.

    Raises:
        ValueError: if a file is not as it was saved, or the manifest is damaged; it names the file
            and says what to do.
        OSError: if a file cannot be read.
    """
    path = Path(folder) / MANIFEST
    if not path.is_file():
        return
    sums = _read_json(path)
    if not isinstance(sums, dict):
        raise ValueError(f"{path} must hold checksums by file, got {sums!r:.60}; remove it")
    for name in names:
        if name in sums and sums[name] != _checksum(Path(folder) / name):
            raise ValueError(
                f"{Path(folder) / name} is not as it was saved: damaged, or changed by hand. Take "
                f"a whole copy of the folder; or, if the change is meant, remove its {MANIFEST}"
            )


def _checksum(path: Path) -> str:
    if path.suffix == ".json":
        content = json.dumps(_read_json(path), sort_keys=True)
        return f"{zlib.crc32(content.encode()):08x}"
    if path.suffix != ".safetensors":
        return f"{zlib.crc32(path.read_bytes()):08x}"
    try:
        with safe_open(path, "pt") as file:
            own = (file.metadata() or {}).get(CHECKSUM)
    except SafetensorError:
        own = None
    return own or checksum(read_weight_file(path))


def _read_json(path: Path) -> object:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{path} is damaged, it is no JSON: {reason}") from None
