"""Treebanks: sentences with their phrases in brackets, read from files in the Penn format.

The CRAFT treebank is part of the package. The Penn Treebank requires a licence, and is read from
the user's own folder in the same way.

CRAFT is by Verspoor et al. and Bada et al. (2012), see the licence file beside the data.
"""

import hashlib
import lzma
import os
import re
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from transformer.data.corpora.download import sha256
from transformer.data.corpora.local import EMBEDDED
from transformer.data.lines import most_unpacked

LICENCE = "CC BY 3.0; the CRAFT corpus of the University of Colorado (Verspoor et al. 2012)"

CRAFT_FILE = "craft-penn.tar.xz"
CRAFT_SHA256 = "61a6ffb873d45e7a3ff8a574ff339fb53ff853a463c582e0bae22c0a9ec23431"
#: Of the same tar file packed by gzip, as it used to be: the name of its content in records.
RECORDED_SHA256 = "32b8f025d99602127216b589bf28321ef65a675a27c7131ee29c4fa56e2224c3"

#: Tag of empty elements: traces of moved words, and omitted subjects.
EMPTY_TAG = "-NONE-"

#: Sentences are some 20 phrases deep; a far deeper tree would exhaust Python's stack.
MOST_DEPTH = 200

#: File names that hold trees.
ENDINGS = (".tree", ".mrg", ".prd")

# A tagged word, a bracket with its label if it has one, a closing bracket, or a stray word.
# Words of scientific text contain thin spaces: only ASCII spaces separate.
_BLANK, _NAME = r"[ \t\r\n]", r"[^ \t\r\n()]"
_PIECE = re.compile(
    rf"\({_BLANK}*({_NAME}+){_BLANK}+({_NAME}+){_BLANK}*\)|\({_BLANK}*({_NAME}*)|(\))|({_NAME}+)"
)
_WSJ = re.compile(r"wsj_(\d\d)\d\d$")


@dataclass(frozen=True, slots=True)
class Tree:
    """A phrase with its parts, or one word with its tag.

    The label is that of the phrase, such as ``NP``, or the tag of the word, such as ``NN``. A word
    has no children; a phrase has no word.
    """

    label: str
    children: tuple["Tree", ...] = ()
    word: str | None = None

    def leaves(self) -> list["Tree"]:
        """Return the tagged words, in the order of the sentence."""
        if self.word is not None:
            return [self]
        return [leaf for part in self.children for leaf in part.leaves()]

    def words(self) -> list[str]:
        """Return the words, in the order of the sentence."""
        return [leaf.word for leaf in self.leaves() if leaf.word is not None]

    def depth(self) -> int:
        """Return the number of phrases from the root to the deepest word; 0 for a word."""
        return 0 if self.word is not None else 1 + max(part.depth() for part in self.children)

    def phrases(self, start: int = 0) -> list[tuple[str, int, int]]:
        """Return label, first word and end (one after the last word) of every phrase.

        A phrase comes after the phrases inside it. Words are counted from ``start``.
        """
        if self.word is not None:
            return []
        found: list[tuple[str, int, int]] = []
        end = start
        for part in self.children:
            found += part.phrases(end)
            end = end + 1 if part.word is not None else found[-1][2]
        return [*found, (self.label, start, end)]

    def __str__(self) -> str:
        inside = " ".join(map(str, self.children)) if self.word is None else self.word
        return f"({self.label} {inside})"


@dataclass(frozen=True)
class Treebank:
    """Trees by the name of their article, and the SHA-256 of the files."""

    name: str
    licence: str
    checksum: str
    articles: dict[str, list[Tree]]

    def trees(self, articles: Iterable[str] | None = None) -> list[Tree]:
        """Return the trees of the named articles, or of all; KeyError for an unknown name."""
        names = self.articles if articles is None else articles
        return [tree for name in names for tree in self.articles[name]]

    def __repr__(self) -> str:
        count = sum(map(len, self.articles.values()))
        return f"Treebank({self.name!r}, {len(self.articles)} articles, {count:,} trees)"


def read_trees(text: str, name: str = "text") -> Iterator[Tree]:
    """Read trees in brackets without changing them: with traces and function tags.

    The outermost pair of brackets, which has no label in Penn files, becomes a tree labelled "".

    Raises:
        ValueError: if brackets do not match, are more than ``MOST_DEPTH`` deep, or a word has no
            tag; the message begins with ``name``.
    """
    labels: list[str] = []  # of the open phrases
    parts: list[list[Tree]] = []  # and their parts so far
    leaves: dict[tuple[str, str], Tree] = {}  # one object for equal ones
    for tag, word, label, closing, stray in _PIECE.findall(text):
        if word:
            tree = leaves.get((tag, word)) or leaves.setdefault((tag, word), Tree(tag, (), word))
        elif closing:
            if not labels:
                raise ValueError(f"{name}: a bracket closes that was never opened")
            label, children = labels.pop(), parts.pop()
            if not children:
                raise ValueError(f"{name}: ({label}) holds nothing")
            tree = Tree(label, tuple(children))
        elif stray:
            raise ValueError(f"{name}: the word {stray!r} has no tag of its own")
        else:
            labels.append(label)
            parts.append([])
            if len(labels) > MOST_DEPTH:
                raise ValueError(f"{name}: brackets are more than {MOST_DEPTH} deep")
            continue
        if parts:
            parts[-1].append(tree)
        else:
            yield tree
    if labels:
        raise ValueError(f"{name}: {len(labels)} brackets are never closed")


def plain(tree: Tree) -> Tree | None:
    """Reduce a tree to the target of a parser: no traces, no function tags, a labelled root.

    Empty elements are removed, and phrases without other parts. ``NP-SBJ-1`` and ``NP=2`` become
    ``NP``. A root without a label is removed if it has one phrase, otherwise named ``TOP``. None if
    nothing is left.
    """
    if tree.word is not None:
        return None if tree.label == EMPTY_TAG else tree
    children = tuple(kept for child in tree.children if (kept := plain(child)) is not None)
    if not children:
        return None
    if tree.label:
        return Tree(_without_functions(tree.label), children)
    return children[0] if len(children) == 1 and children[0].word is None else Tree("TOP", children)


@cache
def _without_functions(label: str) -> str:
    # The first character always stays, so that no label becomes empty.
    return label[0] + re.split("[-=]", label[1:], maxsplit=1)[0]


def load_treebank(source: Path | str = "craft") -> Treebank:
    """Load a treebank, with every tree reduced by :func:`plain`.

    Args:
        source: ``craft``, which is part of the package; or a folder, searched recursively; or a
            tar archive. Each file that ends in ``.mrg``, ``.prd`` or ``.tree`` is one article.

    Raises:
        FileNotFoundError: if there is no such source, or no file of trees in it.
        ValueError: if a file is damaged, or two files have the same name.
    """
    craft = source == "craft"
    path = EMBEDDED / "craft-treebank" / CRAFT_FILE if craft else Path(source)
    if path.is_dir():
        files, checksum = _of_folder(path)
    elif path.is_file():
        files, checksum = _of_archive(path), sha256(path)
    else:
        raise FileNotFoundError(f"source must be craft, a folder or an archive, got {source!r}")
    if craft and checksum != CRAFT_SHA256:
        raise ValueError(f"{path} is damaged: SHA-256 {checksum}, expected {CRAFT_SHA256}")
    articles: dict[str, list[Tree]] = {}
    for name, data in files:
        article = Path(name).stem
        if article in articles:
            raise ValueError(f"{path}: two files of trees are called {article}")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ValueError(f"{name} is not UTF-8 text: {error}") from None
        trees = (plain(tree) for tree in read_trees(text, name))
        articles[article] = [tree for tree in trees if tree is not None]
    if not articles:
        raise FileNotFoundError(f"{path} holds no file that ends in {', '.join(ENDINGS)}")
    if craft:
        return Treebank("craft", LICENCE, RECORDED_SHA256, articles)
    return Treebank(path.name, "of the user's own files", checksum, articles)


def _of_folder(folder: Path) -> tuple[list[tuple[str, bytes]], str]:
    """Read all files of trees, sorted by path, and compute one checksum."""
    found = os.walk(folder, followlinks=True)
    paths = sorted(
        Path(place, n) for place, _, names in found for n in names if n.endswith(ENDINGS)
    )
    files = [(path.relative_to(folder).as_posix(), path.read_bytes()) for path in paths]
    digest = hashlib.sha256()
    for name, data in files:
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return files, digest.hexdigest()


def _of_archive(path: Path) -> list[tuple[str, bytes]]:
    """Read all files of trees. Nothing is extracted to disk, so names are harmless."""
    try:
        with tarfile.open(path) as archive:
            members = [m for m in archive if m.isfile() and Path(m.name).suffix in ENDINGS]
            most, claimed = most_unpacked(path.stat().st_size), sum(m.size for m in members)
            if claimed > most:
                raise ValueError(f"{path} unpacks to {claimed:,} bytes, more than {most:,}")
            members.sort(key=lambda member: member.name)
            files = [(member.name, archive.extractfile(member)) for member in members]
            return [(name, file.read()) for name, file in files if file is not None]
    except (tarfile.TarError, EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        reason = " ".join(str(error).split())
        raise ValueError(f"{path} is no readable archive: {reason}") from None


def split_articles(names: Iterable[str]) -> dict[str, list[str]]:
    """Split articles into training, validation and test, by their names.

    The Wall Street Journal's files (``wsj_0201``) are split by the convention of parsing: sections
    2 to 21, 22 and 23; the others are left out. Other articles are ordered by the SHA-256 of their
    names, which is independent of their content: 15% are for the test, 5% for validation.

    Raises:
        ValueError: if a part would be empty.

    Paper: section 6.3 (training on the WSJ, development on section 22, test on section 23)
    """
    names = sorted(names)
    section = {name: int(found[1]) for name in names if (found := _WSJ.match(name))}
    if names and all(name in section for name in names):
        parts = {"train": range(2, 22), "validation": range(22, 23), "test": range(23, 24)}
        split = {part: [n for n in names if section[n] in kept] for part, kept in parts.items()}
    else:
        order = sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())
        first, second = (max(1, round(part * len(names))) for part in (0.15, 0.05))
        split = {
            "train": sorted(order[first + second :]),
            "validation": sorted(order[first : first + second]),
            "test": sorted(order[:first]),
        }
    for part, articles in split.items():
        if not articles:
            raise ValueError(f"names must give each part an article, got none for {part}")
    return split


def no_longer_than(trees: Sequence[Tree], max_words: int) -> list[Tree]:
    """Return the trees of at most ``max_words`` words, punctuation included."""
    return [tree for tree in trees if len(tree.leaves()) <= max_words]
