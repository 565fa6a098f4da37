"""Lines of text files, one after the other, in constant memory."""

from collections.abc import Iterator
from pathlib import Path

from transformer.data.packed import iterate_gzip

_BLOCK = 1 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def read_lines(path: Path | str) -> list[str]:
    r"""Read a UTF-8 text file, plain or ``.gz``, into its lines.

    Args:
        path: The file; a name that ends in ``.gz`` is decompressed.

    Returns:
        The lines without their ends.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is empty, not UTF-8, damaged gzip, or unpacks to more than text.
    """
    return list(iterate_lines(path))


def iterate_lines(path: Path | str) -> Iterator[str]:
    r"""Read the lines of a UTF-8 text file, plain or ``.gz``, as they are asked for.

    Only ``\n`` and ``\r\n`` end a line. ``str.splitlines`` would also break at characters such as
    U+2028 that occur inside sentences of real corpora, and shift all lines that follow.

    Args:
        path: The file; a name that ends in ``.gz`` is decompressed.

    Returns:
        An iterator over the lines without their ends.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is empty, not UTF-8, damaged gzip, or unpacks to more than text.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
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
    if not lines:
        raise ValueError(f"{path} is empty")


def _whole_lines(path: Path) -> Iterator[bytes]:
    """Yield a file in pieces that end where a line ends."""
    begun: list[bytes] = []  # of a line that goes on in the next block
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
        if path.suffix == ".gz":
            yield from iterate_gzip(file, path.stat().st_size, str(path), _BLOCK)
        else:
            while block := file.read(_BLOCK):
                yield block
