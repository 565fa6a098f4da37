"""Parallel text: pairs of a sentence and its translation, and their files.

The only format is two text files in UTF-8 with one sentence per line, where line n of one file
translates line n of the other. Either may be compressed with gzip or xz.
"""

import hashlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, zip_longest
from pathlib import Path

from transformer.data.lines import iterate_lines, require_regular_file


@dataclass(frozen=True)
class Split:
    """Sentences and their translations; iterating yields pairs.

    Raises:
        ValueError: if there are not as many source as target sentences.
        TypeError: if one of them is not a string, such as None; the message names its row.
    """

    source: list[str]
    target: list[str]

    def __post_init__(self) -> None:
        if len(self.source) != len(self.target):
            raise ValueError(
                f"source and target must be aligned: got {len(self.source)} source and "
                f"{len(self.target)} target sentences"
            )
        for name, side in (("source", self.source), ("target", self.target)):
            if set(map(type, side)) - {str}:  # faster than asking each
                for row, text in enumerate(side):
                    if not isinstance(text, str):
                        raise TypeError(f"{name}[{row}] must be a string, got {text!r:.80}")

    @classmethod
    def of(cls, pairs: Iterable[tuple[str, str]]) -> "Split":
        """Make a split of pairs."""
        pairs = list(pairs)
        return Split([source for source, _ in pairs], [target for _, target in pairs])

    def __len__(self) -> int:
        return len(self.source)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return zip(self.source, self.target, strict=True)

    def swapped(self) -> "Split":
        """Return the same pairs in the other direction."""
        return Split(self.target, self.source)

    def first(self, count: int | None) -> "Split":
        """Return the first ``count`` pairs; all if it is None."""
        return self if count is None else Split(self.source[:count], self.target[:count])

    def __repr__(self) -> str:
        # Without the text: a notebook cell that ends in a split would print megabytes.
        return f"Split({len(self):,} pairs)"


class StreamedSplit(Split):
    """A split that stays on disk and may be larger than the memory: each iteration reads it again.

    Only ``source`` and ``target`` load the whole text.
    """

    read: Callable[[], Iterable[tuple[str, str]]]
    identity: str  #: a name that no other text has

    def __init__(self, read: Callable[[], Iterable[tuple[str, str]]], identity: str) -> None:
        self.__dict__.update(read=read, identity=identity)

    @cached_property
    def _loaded(self) -> Split:
        return Split.of(self)

    source = property(lambda self: self._loaded.source)
    target = property(lambda self: self._loaded.target)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.read())

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def swapped(self) -> "StreamedSplit":
        read = self.read
        return StreamedSplit(lambda: ((b, a) for a, b in read()), f"{self.identity}, swapped")

    def first(self, count: int | None) -> "Split":
        if count is None:
            return self
        read = self.read
        return StreamedSplit(lambda: islice(read(), count), f"{self.identity}, first {count}")

    def __repr__(self) -> str:
        return f"StreamedSplit({self.identity})"


@dataclass(frozen=True)
class Corpus:
    """A named parallel corpus.

    Paper: section 5.1
    """

    name: str  #: such as ``tatoeba-en-de``
    source_language: str  #: language code, such as ``en``
    target_language: str
    licence: str  #: and attribution, in words
    splits: dict[str, Split]  #: ``train``, ``validation`` and ``test`` are attributes, too
    #: Source file and target file of each split that was read from the user's own files.
    files: dict[str, tuple[str, str]] = field(default_factory=dict)

    @property
    def train(self) -> Split:
        """The training split; ValueError if the corpus has none."""
        return self._split("train")

    @property
    def validation(self) -> Split:
        """The validation split; ValueError if the corpus has none."""
        return self._split("validation")

    @property
    def test(self) -> Split:
        """The test split; ValueError if the corpus has none."""
        return self._split("test")

    def _split(self, name: str) -> Split:
        if name not in self.splits:
            raise ValueError(
                f"corpus {self.name} has no {name} split; it has {', '.join(self.splits)}"
            )
        return self.splits[name]

    @property
    def checksum(self) -> str:
        """SHA-256, in hex, of the names and the text of all splits, in order."""
        return self._checksum_and_sizes[0]

    @property
    def sizes(self) -> dict[str, int]:
        """Number of pairs of each split; reads the text once, together with the checksum."""
        return self._checksum_and_sizes[1]

    @cached_property
    def _checksum_and_sizes(self) -> tuple[str, dict[str, int]]:
        digest, sizes = hashlib.sha256(), dict.fromkeys(self.splits, 0)
        for name, split in self.splits.items():
            digest.update(f"{name}\n".encode())
            for source, target in split:
                digest.update(f"{source}\t{target}\n".encode())
                sizes[name] += 1
        return digest.hexdigest(), sizes

    def __repr__(self) -> str:
        sizes = ", ".join(  # without reading a text on disk
            f"{name} on disk" if isinstance(split, StreamedSplit) else f"{name} {len(split):,}"
            for name, split in self.splits.items()
        )
        return f"Corpus({self.name}: {sizes})"


def load_parallel_files(
    source_path: Path | str, target_path: Path | str, max_words: int | None = 1000
) -> Split:
    """Load two aligned text files: plain, ``.gz`` or ``.xz``, one sentence per line.

    A pair with a blank side, or with more than ``max_words`` words on a side, is left out, and
    one warning gives the number. Such lines are mostly alignment gaps and whole pages, and a
    single line of 10,000 words would determine the memory of a run. None keeps all lengths.

    Raises:
        FileNotFoundError: if a file is missing.
        ValueError: if a file is empty, damaged, not UTF-8 or not a regular file, if the files have
            different numbers of lines, or if no pair is left.
    """
    return Split.of(_read_pairs(source_path, target_path, max_words))


def stream_parallel_files(
    source_path: Path | str, target_path: Path | str, max_words: int | None = 1000
) -> StreamedSplit:
    """Leave two aligned text files on disk, to be read as :func:`load_parallel_files` reads them.

    Errors of the text are raised when the pairs are read, and a warning is given only once. The
    identity of the pairs consists of the files' paths, sizes and times of modification.
    """
    source, target = (Path(path).absolute() for path in (source_path, target_path))
    for path in (source, target):
        require_regular_file(path)
    found = [(str(p), p.stat().st_size, p.stat().st_mtime_ns) for p in (source, target)]
    given: set[str] = set()
    return StreamedSplit(
        lambda: _read_pairs(source, target, max_words, given), f"{found}, {max_words}"
    )


def _read_pairs(
    source_path: Path | str,
    target_path: Path | str,
    max_words: int | None,
    given: set[str] | None = None,
) -> Iterator[tuple[str, str]]:
    lines = _aligned_lines(source_path, target_path)
    return kept_pairs(lines, f"{source_path}, {target_path}", max_words, given)


def _aligned_lines(source_path: Path | str, target_path: Path | str) -> Iterator[tuple[str, str]]:
    source, target = iterate_lines(source_path), iterate_lines(target_path)
    for number, (a, b) in enumerate(zip_longest(source, target)):
        if a is None or b is None:
            longer = number + 1 + sum(1 for _ in (target if a is None else source))
            counts = (number, longer) if a is None else (longer, number)
            raise ValueError(
                f"files must have equally many lines: {source_path} has {counts[0]}, "
                f"{target_path} has {counts[1]}"
            )
        yield a, b


def kept_pairs(
    pairs: Iterable[tuple[str, str]],
    origin: str,
    max_words: int | None = 1000,
    given: set[str] | None = None,
) -> Iterator[tuple[str, str]]:
    """Leave out pairs with a blank or an overlong side; at the end, warn with their number.

    Args:
        pairs: sentences and their translations.
        origin: of the pairs, for messages.
        max_words: length limit of either side, in words between spaces; None keeps all.
        given: warnings that are not repeated: a text that stays on disk is read more than once.

    Raises:
        ValueError: if no pair is left, or ``max_words`` is below 1.
        TypeError: if a pair is not two strings; the message names its row, counted from 0.
    """
    if max_words is not None and max_words < 1:
        raise ValueError(f"max_words must be at least 1 or None, got {max_words}")
    blank = overlong = kept = 0
    for row, pair in enumerate(pairs):
        # A dictionary of two sentences would yield the names of its languages.
        if not (isinstance(pair, (tuple, list)) and [*map(type, pair)] == [str, str]):
            raise TypeError(f"{origin}[{row}] must be a pair of strings, got {pair!r:.80}")
        if not (pair[0].strip() and pair[1].strip()):
            blank += 1
        # n + 1 words have at least 2n + 1 characters: most lines need no counting.
        elif max_words is not None and any(
            len(side) > 2 * max_words and len(side.split()) > max_words for side in pair
        ):
            overlong += 1
        else:
            kept += 1
            yield pair
    if not blank and not overlong:
        return
    reasons = [f"{blank} with a blank side"] if blank else []
    reasons += [f"{overlong} with more than {max_words} words"] if overlong else []
    notice = f"{origin}: left out {' and '.join(reasons)}, of {kept + blank + overlong} pairs"
    if not kept:
        raise ValueError(f"no pair is left of {notice}")
    if given is None or notice not in given:
        warnings.warn(notice, stacklevel=4)
    if given is not None:
        given.add(notice)
