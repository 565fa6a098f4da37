"""Packed files from others: unpacked no further than is plausible for text.

A few kilobytes can unpack to as many gigabytes, by mistake or by design. What a file unpacks to is
limited before it is held in memory.
"""

import gzip
import io
import zlib
from collections.abc import Iterator

#: So much may always come out of a file, in bytes.
ALWAYS_ALLOWED = 1 << 28

#: Beyond that, a file may unpack to so many times its size. Text becomes 3 to 10 times smaller.
HIGHEST_RATIO = 100


def most_unpacked(packed_bytes: int) -> int:
    """Return how many bytes a packed file may unpack to.

    Args:
        packed_bytes: size of the file.
    """
    return max(ALWAYS_ALLOWED, HIGHEST_RATIO * packed_bytes)


def unpack_gzip(data: bytes, name: str) -> bytes:
    """Unpack a gzip file.

    Args:
        data: the file.
        name: what the error calls it.

    Returns:
        What was packed.

    Raises:
        ValueError: if the file is damaged, or unpacks to more than any text does.
    """
    return b"".join(iterate_gzip(io.BytesIO(data), len(data), name))


def iterate_gzip(
    packed: io.BufferedIOBase, size: int, name: str, block_size: int = 1 << 20
) -> Iterator[bytes]:
    """Unpack a gzip file block by block, so that it need not fit the memory.

    Args:
        packed: the file, open for reading.
        size: how many bytes it has.
        name: what the error calls it.
        block_size: bytes of a block.

    Returns:
        An iterator over blocks, none of them empty.

    Raises:
        ValueError: if the file is damaged, or unpacks to more than any text does.
    """
    most, unpacked = most_unpacked(size), 0
    with gzip.GzipFile(fileobj=packed) as file:
        while True:
            try:
                block = file.read(min(block_size, most + 1))
            except (EOFError, OSError, zlib.error) as error:
                raise ValueError(f"{name} is damaged or not a gzip file: {error}") from None
            if not block:
                return
            unpacked += len(block)
            if unpacked > most:
                raise ValueError(
                    f"{name} has {size:,} bytes and unpacks to more than {most:,}, as no text "
                    f"does; unpack it yourself if it is what you expect"
                )
            yield block
