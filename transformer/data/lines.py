"""Read the lines of text files, plain or compressed, in constant memory.

A few compressed kilobytes can unpack to as many gigabytes. So the unpacked size is limited before
it is held in memory, to what is plausible for text.
"""

import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

#: Every file may unpack to this many bytes.
ALWAYS_ALLOWED = 1 << 28

#: A larger file may unpack to this many times its size. Text shrinks by a factor of 3 to 10.
HIGHEST_RATIO = 100

_BLOCK = 1 << 20
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
    r"""Iterate over the lines of a UTF-8 text file, without their ends.

    Only ``\n`` and ``\r\n`` end a line. ``str.splitlines`` would also break at characters such as
    U+2028 that occur inside sentences of real corpora, and shift all lines that follow.

    Args:
        path: the file; a name that ends in ``.gz`` or ``.xz`` is decompressed.
        may_be_empty: yield nothing from an empty file instead of raising ValueError.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file is empty, not a regular file, not UTF-8, damaged, or unpacks to more
            than text.
    """
    path = Path(path)
    require_regular_file(path)
    lines = position = 0
    for text in _whole_lines(path):
        start = len(_BYTE_ORDER_MARK) * (not position and text.startswith(_BYTE_ORDER_MARK))
        try:
            found = text[start:].decode().removesuffix("\n").split("\n")
        except UnicodeDecodeError as error:
            at = start + error.start
            line = lines + text.count(b"\n", 0, at) + 1
            raise ValueError(
                f"{path} is not UTF-8: line {line} holds the byte 0x{text[at]:02x} "
                f"(byte {position + at} of the file)"
            ) from None
        if len(text) > start:
            lines, position = lines + len(found), position + len(text)
            yield from (line.removesuffix("\r") for line in found) if b"\r" in text else found
    if not lines and not may_be_empty:
        raise ValueError(f"{path} is empty")


def require_regular_file(path: Path) -> None:
    """Raise FileNotFoundError or ValueError for a missing file, a folder or a pipe."""
    if not path.exists():
        raise FileNotFoundError(f"no such file: {path}")
    if not path.is_file():
        raise ValueError(
            f"{path} must be a regular file, not a folder or a pipe: text is read more than once"
        )


def _whole_lines(path: Path) -> Iterator[bytes]:
    """Yield a file in pieces that end at the end of a line."""
    begun: list[bytes] = []  # the start of a line that continues in the next block
    for block in _blocks(path):
        head, end, tail = block.rpartition(b"\n")
        if end:
            yield b"".join([*begun, head, end])
            begun = []
        begun.append(tail)
    if last := b"".join(begun):
        yield last


def _blocks(path: Path) -> Iterator[bytes]:
    with open(path, "rb") as file:
        if path.suffix in _PACKED:
            yield from _unpacked(file, path.stat().st_size, str(path), path.suffix)
        else:
            while block := file.read(_BLOCK):
                yield block


def most_unpacked(packed_bytes: int) -> int:
    """Return how many bytes a packed file of the given size may unpack to."""
    return max(ALWAYS_ALLOWED, HIGHEST_RATIO * packed_bytes)


def unpack_gzip(data: bytes, name: str) -> bytes:
    """Unpack a gzip file called ``name``.

    Raises:
        ValueError: if it is damaged, or unpacks to more than is plausible for text.
    """
    return b"".join(_unpacked(io.BytesIO(data), len(data), name))


def _unpacked(
    packed: io.BufferedIOBase, size: int, name: str, suffix: str = ".gz"
) -> Iterator[bytes]:
    kind, opened = _PACKED[suffix]
    most, unpacked = most_unpacked(size), 0
    with opened(packed) as file:
        while True:
            try:
                block = file.read(min(_BLOCK, most + 1))
            except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
                raise ValueError(f"{name} is damaged or not {kind} file: {error}") from None
            if not block:
                return
            unpacked += len(block)
            if unpacked > most:
                raise ValueError(
                    f"{name} has {size:,} bytes and unpacks to more than {most:,}, as no text "
                    f"does; unpack it yourself if it is what you expect"
                )
            yield block
