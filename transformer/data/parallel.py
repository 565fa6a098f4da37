"""Parallel text: pairs of a sentence and its translation, and files that hold them.

The only format is the plainest one: two text files in UTF-8, one sentence a line, where line n
of one file translates line n of the other. Either may be compressed with gzip.
"""

import hashlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from transformer.data.packed import unpack_gzip


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
        """The same pairs in the other direction.

        Paper: not in the paper; convenience.
        """
        return Split(self.target, self.source)

    def __repr__(self) -> str:
        # Not the text itself: a notebook cell that ends in a split would print megabytes.
        return f"Split({len(self):,} pairs)"


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

        Paper: not in the paper; a recorded result should name its data exactly.
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


def read_lines(path: Path | str) -> list[str]:
    r"""Read a UTF-8 text file, plain or ``.gz``, into its lines.

    Only ``\n`` and ``\r\n`` end a line. ``str.splitlines`` would also break at characters such as
    U+2028 that occur inside sentences of real corpora, and shift all lines that follow.

    Args:
        path: The file; a name that ends in ``.gz`` is decompressed.

    Returns:
        The lines without their ends.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is empty, not UTF-8, damaged gzip, or unpacks to more than text.

    Paper: not in the paper; reading files.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = unpack_gzip(data, str(path))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{path} is not UTF-8: line {line} holds the byte 0x{data[error.start]:02x} "
            f"(byte {error.start} of the file)"
        ) from None
    if not text:
        raise ValueError(f"{path} is empty")
    lines = text.removesuffix("\n").split("\n")
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


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
    source, target = read_lines(source_path), read_lines(target_path)
    if len(source) != len(target):
        raise ValueError(
            f"files must have equally many lines: {source_path} has {len(source)}, "
            f"{target_path} has {len(target)}"
        )
    return without_odd_pairs(source, target, f"{source_path}, {target_path}", max_words)


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

    Paper: not in the paper; cleaning of data.
    """
    if max_words is not None and max_words < 1:
        raise ValueError(f"max_words must be at least 1 or None, got {max_words}")
    kept: list[tuple[str, str]] = []
    blank = overlong = 0
    for pair in zip(source, target, strict=True):
        if not (pair[0].strip() and pair[1].strip()):
            blank += 1
        elif max_words is not None and any(_more_words_than(side, max_words) for side in pair):
            overlong += 1
        else:
            kept.append(pair)
    if not blank and not overlong:
        return Split(source, target)
    reasons = [f"{blank} with a blank side"] if blank else []
    reasons += [f"{overlong} with more than {max_words} words"] if overlong else []
    notice = f"{origin}: left out {' and '.join(reasons)}, of {len(source)} pairs"
    if not kept:
        raise ValueError(f"no pair is left of {notice}")
    warnings.warn(notice, stacklevel=3)
    return Split([source for source, _ in kept], [target for _, target in kept])


def _more_words_than(text: str, limit: int) -> bool:
    # n + 1 words take at least 2n + 1 characters: most lines need no counting.
    return len(text) > 2 * limit and len(text.split()) > limit
