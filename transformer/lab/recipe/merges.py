"""Byte-pair encoding from scratch: the merges, in the order in which the library learns them.

The package trains and runs the `tokenizers` library, see :mod:`transformer.data.tokenizer`. This
module does the same in plain Python, slowly enough to be read, and ends in the same merges and the
same pieces. Pieces are ``bytes`` here; the library writes each byte as one printable character.

Paper: section 5.1
"""

import heapq
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path

from transformer.training.progress import progress

Pair = tuple[bytes, bytes]

# A blank belongs to the word behind it. Runs of letters, of digits and of other signs are words of
# their own, and so are the English endings that an apostrophe begins. In a longer run of blanks the
# last one is left to the word.
_WORD = re.compile(
    r"'(?:s|t|re|ve|m|ll|d)| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+"
)  # fmt: skip

# The order in which the library numbers the bytes: first those that Latin-1 can print, then the
# others. It decides between pairs that are equally frequent.
_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
BYTE_ORDER = _PRINTABLE + [byte for byte in range(256) if byte not in _PRINTABLE]


def split_words(text: str) -> list[str]:
    """Split a text into the words that no merge may join.

    Args:
        text: any text.

    Returns:
        The words, blanks included: joined they are the text. As the library splits, but for rare
        signs that are numbers and no digits, such as ``²``: they count as letters here.
    """
    return _WORD.findall(text)


def count_words(texts: Iterable[str]) -> Counter[str]:
    """Count the words of a text, which is all that learning needs to know of it.

    Args:
        texts: sentences.

    Paper: section 5.1
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(split_words(text))
    return counts


def learn_merges(words: Mapping[str, int], num_merges: int) -> list[Pair]:
    """Join the most frequent pair of neighbouring pieces, again and again.

    Of pairs that are equally frequent, the one whose left piece is older is first, then the one
    whose right piece is older; bytes count as oldest, in the order of ``BYTE_ORDER``. Only the
    words that hold the pair are touched, so a merge costs what it changes.

    Args:
        words: how often each word occurs, see :func:`count_words`.
        num_merges: how many to learn, at least 0.

    Returns:
        The merges, first learned first; fewer where nothing is left to join. The first n of them
        are what ``num_merges=n`` gives.

    Raises:
        ValueError: if ``num_merges`` is negative.

    Paper: section 5.1
    """
    if num_merges < 0:
        raise ValueError(f"num_merges must be at least 0, got {num_merges}")
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
    # Entries are never removed. One whose count is no longer true is passed over.
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
        # Two ways may lead to one piece: it keeps its first number.
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
    """Replace a pair in a word, from left to right, and note what that does to the counts."""
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
    """Spell one word in pieces.

    Args:
        word: one of :func:`split_words`.
        rank: the place of each merge, first learned smallest. Leave out the last ones, and the
            vocabulary is smaller.

    Returns:
        The pieces; joined they are the bytes of the word.

    Paper: section 5.1
    """
    pieces = [bytes([byte]) for byte in word.encode()]
    while len(pieces) > 1:
        # The merge that was learned first, and of several places the leftmost.
        known = [(rank.get(pair, len(rank)), i) for i, pair in enumerate(pairwise(pieces))]
        first, i = min(known)
        if first == len(rank):
            break
        pieces[i : i + 2] = [pieces[i] + pieces[i + 1]]
    return pieces


def read_merges(path: Path | str) -> list[Pair]:
    """Read the merges of the library from the file of a tokenizer.

    Args:
        path: ``tokenizer.json``, as :meth:`transformer.data.tokenizer.Tokenizer.save` writes it.

    Returns:
        The merges, first learned first.

    Raises:
        FileNotFoundError: if there is no such file.

    Paper: section 5.1
    """
    # The library's alphabet: printable bytes stand for themselves, the others follow from U+0100.
    byte_of = {chr(byte): byte for byte in _PRINTABLE}
    byte_of |= {chr(0x100 + i): byte for i, byte in enumerate(BYTE_ORDER[len(_PRINTABLE) :])}
    merges = json.loads(Path(path).read_text(encoding="utf-8"))["model"]["merges"]
    # Older versions of the library write "a b", newer ones ["a", "b"].
    pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in merges]
    return [
        (bytes(byte_of[c] for c in left), bytes(byte_of[c] for c in right)) for left, right in pairs
    ]
