"""Packed files from others: unpacked no further than is plausible for text.

A few kilobytes can unpack to as many gigabytes, by mistake or by design. What a file unpacks to is
limited before it is held in memory.

Paper: not in the paper
"""

import gzip
import io
import zlib

#: So much may always come out of a file, in bytes.
ALWAYS_ALLOWED = 1 << 28

#: Beyond that, a file may unpack to so many times its size. Text becomes 3 to 10 times smaller.
HIGHEST_RATIO = 100


def most_unpacked(packed_bytes: int) -> int:
    """Return how many bytes a packed file may unpack to.

    Args:
        packed_bytes: size of the file.

    Paper: not in the paper
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

    Paper: not in the paper
    """
    most = most_unpacked(len(data))
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
            unpacked = file.read(most + 1)
    except (EOFError, OSError, zlib.error) as error:
        raise ValueError(f"{name} is damaged or not a gzip file: {error}") from None
    if len(unpacked) > most:
        raise ValueError(
            f"{name} has {len(data):,} bytes and unpacks to more than {most:,}, as no text does; "
            f"unpack it yourself if it is what you expect"
        )
    return unpacked
