"""Byte-pair encoding from scratch: the merges and pieces of the library in plain Python."""

import heapq
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path

from transformer.data.progress import progress

Pair = tuple[bytes, bytes]

# A space belongs to the word after it. Runs of letters, of digits and of other characters are
# separate words, and so are English endings such as "'ll". The last space of a run belongs to the
# next word.
_WORD = re.compile(
    r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+"
)  # fmt: skip

# The library numbers the bytes that Latin-1 can print first, then the others. The order breaks
# ties between equally frequent pairs.
_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
BYTE_ORDER = _PRINTABLE + [byte for byte in range(256) if byte not in _PRINTABLE]


def split_words(text: str) -> list[str]:
    """Split a text into words, spaces included; no merge crosses their borders."""
    return _WORD.findall(text)


def count_words(texts: Iterable[str]) -> Counter[str]:
    """Count the words of some sentences, the only input that learning needs."""
    return Counter(word for text in texts for word in split_words(text))


def learn_merges(words: Mapping[str, int], num_merges: int) -> list[Pair]:
    """Join the most frequent pair of pieces, of equal ones the oldest, again and again."""
    pieces = [bytes([byte]) for byte in BYTE_ORDER]
    number = {piece: i for i, piece in enumerate(pieces)}
    # From here on a piece is its number. Small numbers are old pieces.
    spelled = [[number[bytes([byte])] for byte in word.encode()] for word in words]
    often = list(words.values())
    count: Counter[tuple[int, int]] = Counter()
    places = defaultdict(set)
    for i, (word, times) in enumerate(zip(spelled, often, strict=True)):
        for pair in pairwise(word):
            count[pair] += times
            places[pair].add(i)
    # Entries are never removed; those with an outdated count are skipped.
    heap = [(-times, pair) for pair, times in count.items()]
    heapq.heapify(heap)
    merges: list[Pair] = []
    for _ in progress(range(num_merges)):
        while heap and (count[heap[0][1]] != -heap[0][0] or not heap[0][0]):
            heapq.heappop(heap)
        if not heap:
            break
        _, pair = heapq.heappop(heap)
        left, right = (pieces[piece] for piece in pair)
        merges.append((left, right))
        # Two merges may produce the same piece, which keeps its first number.
        joined = number.setdefault(left + right, len(pieces))
        if joined == len(pieces):
            pieces.append(left + right)
        changes: Counter[tuple[int, int]] = Counter()
        for i in places.pop(pair):
            spelled[i] = _join(spelled[i], pair, joined, often[i], changes)
            for neighbours in pairwise(spelled[i]):
                if joined in neighbours:
                    places[neighbours].add(i)
        for changed, difference in changes.items():
            if difference:
                count[changed] += difference
                heapq.heappush(heap, (-count[changed], changed))
    return merges


def _join(
    word: list[int],
    pair: tuple[int, int],
    joined: int,
    times: int,
    changes: Counter[tuple[int, int]],
) -> list[int]:
    """Replace a pair in a word from left to right, and record the changes of the counts."""
    left, right = pair
    new: list[int] = []
    i, end = 0, len(word)
    while i < end:
        if word[i] != left or i + 1 == end or word[i + 1] != right:
            new.append(word[i])
            i += 1
            continue
        changes[pair] -= times
        if new:
            changes[new[-1], left] -= times
            changes[new[-1], joined] += times
        if i + 2 < end:
            changes[right, word[i + 2]] -= times
            changes[joined, word[i + 2]] += times
        new.append(joined)
        i += 2
    return new


def apply_merges(word: str, rank: Mapping[Pair, int]) -> list[bytes]:
    """Split one word into pieces."""
    pieces = [bytes([byte]) for byte in word.encode()]
    while len(pieces) > 1:
        # The merge that was learned first, at its leftmost place.
        known = [(rank.get(pair, len(rank)), i) for i, pair in enumerate(pairwise(pieces))]
        first, i = min(known)
        if first == len(rank):
            break
        pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
    return pieces


def read_merges(path: Path | str) -> list[Pair]:
    """Read the merges of the library from a ``tokenizer.json``, in the order of learning."""
    # The library's alphabet: printable bytes map to themselves, the others follow from U+0100.
    byte_of = {chr(byte): byte for byte in _PRINTABLE}
    byte_of |= {chr(0x100 + i): byte for i, byte in enumerate(BYTE_ORDER[len(_PRINTABLE) :])}
    merges = json.loads(Path(path).read_text(encoding="utf-8"))["model"]["merges"]
    # Older versions of the library write "a b", newer ones ["a", "b"].
    pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in merges]
    return [
        (bytes(byte_of[c] for c in left), bytes(byte_of[c] for c in right)) for left, right in pairs
    ]
