"""Parallel text: pairs of a sentence and its translation, and files that hold them.

The only format is the plainest one: two text files in UTF-8, one sentence a line, where line n
of one file translates line n of the other. Either may be compressed with gzip.
"""

import hashlib
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, zip_longest
from pathlib import Path

from transformer.data.lines import iterate_lines


@dataclass(frozen=True)
class Split:
    """Sentences and their translations; iterating gives pairs.

    Args:
        source: Source sentences.
        target: Target sentences, of the same length.

    Raises:
        ValueError: If the two lengths differ.

    Paper: section 5.1
    """

    source: list[str]
    target: list[str]

    def __post_init__(self) -> None:
        if len(self.source) != len(self.target):
            raise ValueError(
                f"source and target must be aligned: got {len(self.source)} source and "
                f"{len(self.target)} target sentences"
            )

    def __len__(self) -> int:
        return len(self.source)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return zip(self.source, self.target, strict=True)

    def swapped(self) -> "Split":
        """The same pairs in the other direction."""
        return Split(self.target, self.source)

    def first(self, count: int | None) -> "Split":
        """The first pairs, or all.

        Args:
            count: How many; None for all.
        """
        return self if count is None else Split(self.source[:count], self.target[:count])

    def __repr__(self) -> str:
        # Not the text itself: a notebook cell that ends in a split would print megabytes.
        return f"Split({len(self):,} pairs)"


class StreamedSplit(Split):
    """A split that stays where it is: iterating reads it anew, a few pairs at a time.

    So it may be larger than the memory. Whoever asks for ``source``, ``target`` or the length
    has all of it read at once, as any other split.

    Args:
        read: Begins to read, and yields pairs.
        identity: Names the text. Another text must have another one.

    Paper: section 5.1 (36 million pairs)
    """

    read: Callable[[], Iterable[tuple[str, str]]]
    identity: str

    def __init__(self, read: Callable[[], Iterable[tuple[str, str]]], identity: str) -> None:
        self.__dict__.update(read=read, identity=identity)

    @cached_property
    def _columns(self) -> tuple[list[str], list[str]]:
        pairs = list(self)
        return [source for source, _ in pairs], [target for _, target in pairs]

    source = property(lambda self: self._columns[0])
    target = property(lambda self: self._columns[1])

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self.read())

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def swapped(self) -> "StreamedSplit":
        """The same pairs in the other direction."""
        read = self.read
        return StreamedSplit(lambda: ((b, a) for a, b in read()), f"{self.identity}, swapped")

    def first(self, count: int | None) -> "Split":
        """The first pairs, or all.

        Args:
            count: How many; None for all.
        """
        if count is None:
            return self
        read = self.read
        return StreamedSplit(lambda: islice(read(), count), f"{self.identity}, first {count}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StreamedSplit) and self.identity == other.identity

    def __hash__(self) -> int:
        return hash(self.identity)

    def __repr__(self) -> str:
        return f"StreamedSplit({self.identity})"


@dataclass(frozen=True)
class Corpus:
    """A named parallel corpus with its splits and where it comes from.

    Args:
        name: Name, such as ``tatoeba-en-de``.
        source_language: Language code of the source, such as ``en``.
        target_language: Language code of the target.
        licence: Licence and attribution, in words.
        splits: The splits by name. ``train``, ``validation`` and ``test`` can also be reached as
            attributes.

    Paper: section 5.1
    """

    name: str
    source_language: str
    target_language: str
    licence: str
    splits: dict[str, Split]

    @property
    def train(self) -> Split:
        """The training split; ValueError if the corpus has none.

        Paper: section 5.1
        """
        return self._split("train")

    @property
    def validation(self) -> Split:
        """The validation split; ValueError if the corpus has none.

        Paper: section 5.1
        """
        return self._split("validation")

    @property
    def test(self) -> Split:
        """The test split; ValueError if the corpus has none.

        Paper: section 5.1
        """
        return self._split("test")

    def _split(self, name: str) -> Split:
        if name not in self.splits:
            raise ValueError(
                f"corpus {self.name} has no {name} split; it has {', '.join(self.splits)}"
            )
        return self.splits[name]

    @cached_property
    def checksum(self) -> str:
        """SHA-256, in hex, over the names and the text of all splits, in their order.

        Two runs with one checksum read the same sentences in the same splits and order.
        """
        digest = hashlib.sha256()
        for name, split in self.splits.items():
            digest.update(f"{name}\n".encode())
            for source, target in split:
                digest.update(f"{source}\t{target}\n".encode())
        return digest.hexdigest()

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name} {len(split):,}" for name, split in self.splits.items())
        return f"Corpus({self.name}: {sizes})"


def load_parallel_files(
    source_path: Path | str, target_path: Path | str, max_words: int | None = 1000
) -> Split:
    """Load two aligned text files.

    A pair with a blank side, or with more than ``max_words`` words on a side, is left out, and
    one warning says how many were. Such lines are mostly alignment gaps and whole pages, and
    one 10,000-word line would decide the memory of a run. Both sides of a pair go together, so
    the rest stays aligned.

    Args:
        source_path: File of source sentences, one a line; plain or ``.gz``.
        target_path: File of their translations.
        max_words: Longest side that is kept, in words between blanks; None keeps all.

    Returns:
        The pairs, in the order of the files.

    Raises:
        FileNotFoundError: If a file is missing.
        ValueError: If a file is empty, damaged or not UTF-8, if the two differ in their number
            of lines, or if no pair is left.

    Paper: section 5.1
    """
    pairs = kept_pairs(*_files(source_path, target_path), max_words)
    return _in_memory(pairs)


def stream_parallel_files(
    source_path: Path | str, target_path: Path | str, max_words: int | None = 1000
) -> StreamedSplit:
    """Leave two aligned text files on disk, to be read as :func:`load_parallel_files` reads them.

    Nothing is read yet, and the errors of reading come when it is.

    Args:
        source_path: File of source sentences, one a line; plain or ``.gz``.
        target_path: File of their translations.
        max_words: Longest side that is kept, in words between blanks; None keeps all.

    Returns:
        The pairs. Their identity is made of the files' places, sizes and times of change, so
        that a changed file is another text.

    Raises:
        FileNotFoundError: If a file is missing.

    Paper: section 5.1 (36 million pairs)
    """
    paths = [Path(path).absolute() for path in (source_path, target_path)]
    for path in paths:
        if not path.is_file():
            raise FileNotFoundError(f"no such file: {path}")
    found = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    return StreamedSplit(
        lambda: kept_pairs(*_files(source_path, target_path), max_words), f"{found}, {max_words}"
    )


def _files(
    source_path: Path | str, target_path: Path | str
) -> tuple[Iterator[tuple[str, str]], str]:
    return _aligned_lines(source_path, target_path), f"{source_path}, {target_path}"


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


def without_odd_pairs(
    source: list[str], target: list[str], origin: str, max_words: int | None = 1000
) -> Split:
    """Leave out pairs with a blank or an overlong side, and say how many in one warning.

    Args:
        source: Source sentences.
        target: Their translations, of the same length.
        origin: Where they come from, for the warning.
        max_words: Longest side that is kept, in words between blanks; None keeps all.

    Returns:
        The other pairs, in their order.

    Raises:
        ValueError: If no pair is left, or ``max_words`` is below 1.
    """
    return _in_memory(kept_pairs(zip(source, target, strict=True), origin, max_words))


def _in_memory(pairs: Iterable[tuple[str, str]]) -> Split:
    kept = list(pairs)
    return Split([source for source, _ in kept], [target for _, target in kept])


def kept_pairs(
    pairs: Iterable[tuple[str, str]], origin: str, max_words: int | None = 1000
) -> Iterator[tuple[str, str]]:
    """Leave out odd pairs as :func:`without_odd_pairs` does, one pair after the other.

    Args:
        pairs: Sentences and their translations.
        origin: Where they come from, for the warning.
        max_words: Longest side that is kept, in words between blanks; None keeps all.

    Returns:
        An iterator over the other pairs. At its end it warns, or raises as the other does.
    """
    if max_words is not None and max_words < 1:
        raise ValueError(f"max_words must be at least 1 or None, got {max_words}")
    blank = overlong = kept = 0
    for pair in pairs:
        if not (pair[0].strip() and pair[1].strip()):
            blank += 1
        elif max_words is not None and any(_more_words_than(side, max_words) for side in pair):
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
    warnings.warn(notice, stacklevel=4)


def _more_words_than(text: str, limit: int) -> bool:
    # n + 1 words take at least 2n + 1 characters: most lines need no counting.
    return len(text) > 2 * limit and len(text.split()) > limit
