"""What byte-pair encoding in the chapter needs from the library: its words, bytes and merges."""

import json
import re
from collections import Counter
from collections.abc import Iterable

Pair = tuple[bytes, bytes]

# A space belongs to the word after it. Runs of letters, of digits and of other characters are
# separate words, and so are English endings such as "'ll". The last space of a run belongs to the
# next word.
WORD = re.compile(
    r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+"
)  # fmt: skip

# The library numbers the bytes that Latin-1 can print first, then the others. The order breaks
# ties between equally frequent pairs.
_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
BYTE_ORDER = _PRINTABLE + [byte for byte in range(256) if byte not in _PRINTABLE]


def count_words(texts: Iterable[str]) -> Counter[str]:
    """Count the words of some sentences, the only input that learning needs."""
    return Counter(word for text in texts for word in WORD.findall(text))


def read_merges(tokenizer: str) -> list[Pair]:
    """Return the merges in a ``tokenizer.json``, in the order of learning."""
    # The library's alphabet: printable bytes map to themselves, the others follow from U+0100.
    others = BYTE_ORDER[len(_PRINTABLE) :]
    byte_of = {chr(byte): byte for byte in _PRINTABLE}
    byte_of |= {chr(0x100 + i): byte for i, byte in enumerate(others)}
    bytes_of = lambda piece: bytes(map(byte_of.__getitem__, piece))  # noqa: E731
    merges = json.loads(tokenizer)["model"]["merges"]
    return [(bytes_of(left), bytes_of(right)) for left, right in merges]
