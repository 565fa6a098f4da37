"""Read the lines of text files, plain or compressed, in constant memory.

A few compressed kilobytes can unpack to as many gigabytes. So the unpacked size is limited before
it is held in memory, to what is plausible for text.
"""

import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

#: Every file may unpack to this many bytes.
ALWAYS_ALLOWED = 1 << 28

#: A larger file may unpack to this many times its size. Text shrinks by a factor of 3 to 10.
HIGHEST_RATIO = 100

# By the end of the name: how a message calls the file, and what reads it.
_PACKED: dict[str, tuple[str, Callable[[Any], Any]]] = {
    ".gz": ("a gzip", lambda packed: gzip.GzipFile(fileobj=packed)),
    ".xz": ("an xz", lzma.LZMAFile),
}
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_lines(path: Path | str) -> list[str]:
    """Read all lines of a text file into a list, as :func:`iterate_lines` does one by one."""
    return list(iterate_lines(path))


def iterate_lines(path: Path | str, may_be_empty: bool = False) -> Iterator[str]:
    """Iterate over the lines of a text file as :func:`decode_lines` does.

    Args:
        path: the file; a name that ends in ``.gz`` or ``.xz`` is decompressed.
        may_be_empty: yield nothing from an empty file instead of raising ValueError.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file is empty, not a regular file, not UTF-8, damaged, or unpacks to more
            than text.
    """
    path, empty = Path(path), True
    require_regular_file(path)
    for line in decode_lines(_lines(path), path):
        empty = False
        yield line
    if empty and not may_be_empty:
        raise ValueError(f"{path} is empty")


def decode_lines(lines: Iterable[bytes], name: Path | str) -> Iterator[str]:
    r"""Decode lines of UTF-8, and leave out their ends and a byte-order mark.

    Only ``\n`` and ``\r\n`` end a line. ``str.splitlines`` would also break at characters such as
    U+2028 that occur inside sentences of real corpora, and shift all lines that follow.

    Raises:
        ValueError: if a line is not UTF-8, after those before it are yielded; the message begins
            with ``name``.
    """
    position = 0
    for number, line in enumerate(lines, start=1):
        start = len(_BYTE_ORDER_MARK) * (number == 1 and line.startswith(_BYTE_ORDER_MARK))
        try:
            text = line[start:].decode()
        except UnicodeDecodeError as error:
            at = start + error.start
            raise ValueError(
                f"{name} is not UTF-8: line {number} holds the byte 0x{line[at]:02x} "
                f"(byte {position + at} of the file)"
            ) from None
        position += len(line)
        if text:  # more than a byte-order mark
            yield text.removesuffix("\n").removesuffix("\r")


def require_regular_file(path: Path) -> None:
    """Raise FileNotFoundError or ValueError for a missing file, a folder or a pipe."""
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    if not path.is_file():
        raise ValueError(
            f"{path} must be a regular file, not a folder or a pipe: text is read more than once"
        )


def _lines(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        yield from _unpacked(file, path) if path.suffix in _PACKED else file


def most_unpacked(packed_bytes: int) -> int:
    """Return how many bytes a packed file of the given size may unpack to."""
    return max(ALWAYS_ALLOWED, HIGHEST_RATIO * packed_bytes)


def unpack_gzip(data: bytes, name: str) -> bytes:
    """Unpack a gzip file called ``name``.

    Raises:
        ValueError: if it is damaged, or unpacks to more than is plausible for text.
    """
    return b"".join(_unpacked(io.BytesIO(data), Path(name), ".gz"))


def _unpacked(packed: io.BufferedIOBase, path: Path, suffix: str = "") -> Iterator[bytes]:
    kind, opened = _PACKED[suffix or path.suffix]
    size = packed.seek(0, io.SEEK_END)
    packed.seek(0)
    left = most = most_unpacked(size)
    with opened(packed) as file:
        while True:
            try:
                line = file.readline(left + 1)
            except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
                raise ValueError(f"{path} is damaged or not {kind} file: {error}") from None
            if not line:
                return
            left -= len(line)
            if left < 0:
                raise ValueError(
                    f"{path} has {size:,} bytes and unpacks to more than {most:,}, as no text "
                    f"does; unpack it yourself if it is what you expect"
                )
            yield line
