"""Treebanks: sentences with their phrases in brackets, read from files of the Penn kind.

The CRAFT treebank ships inside the package. A Penn Treebank, which only a licence holder has, is
read from the holder's own folder in the same way.

CRAFT is by Verspoor et al. and Bada et al. (2012), see the licence file beside the data.
"""

import gc
import hashlib
import lzma
import re
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from transformer.data.corpora.download import sha256
from transformer.data.corpora.local import require_file
from transformer.data.packed import most_unpacked

LICENCE = "CC BY 3.0; the CRAFT corpus of the University of Colorado (Verspoor et al. 2012)"

CRAFT_FILE = "craft-penn.tar.gz"
CRAFT_SHA256 = "32b8f025d99602127216b589bf28321ef65a675a27c7131ee29c4fa56e2224c3"

#: Tag of the empty elements, traces of moved words and subjects that are not spoken.
EMPTY_TAG = "-NONE-"

#: Trees of sentences are some 20 phrases deep; far deeper ones exhaust Python's stack.
MOST_DEPTH = 200

#: File names that hold trees.
ENDINGS = (".tree", ".mrg", ".prd")

# A tagged word, a bracket with its label if it has one, a closing bracket, or what fits nowhere.
# Words of scientific text hold thin spaces and the like: only ASCII blanks separate.
_BLANK, _NAME = r"[ \t\r\n]", r"[^ \t\r\n()]"
_PIECE = re.compile(
    rf"\({_BLANK}*({_NAME}+){_BLANK}+({_NAME}+){_BLANK}*\)|\({_BLANK}*({_NAME}*)|(\))|({_NAME}+)"
)
_WSJ = re.compile(r"wsj_(\d\d)\d\d$")


@dataclass(frozen=True, slots=True)
class Tree:
    """A phrase with its parts, or one word with its tag.

    Args:
        label: of the phrase, such as ``NP``, or the tag of the word, such as ``NN``.
        children: the parts, in the order of the sentence; none for a word.
        word: the word itself; None for a phrase.

    Paper: section 6.3
    """

    label: str
    children: tuple["Tree", ...] = ()
    word: str | None = None

    def leaves(self) -> list["Tree"]:
        """Return the tagged words, in the order of the sentence.

        Paper: section 6.3
        """
        found, waiting = [], [self]
        while waiting:
            node = waiting.pop()
            if node.word is not None:
                found.append(node)
            waiting.extend(reversed(node.children))
        return found

    def words(self) -> list[str]:
        """Return the words, in the order of the sentence.

        Paper: section 6.3
        """
        return [leaf.word for leaf in self.leaves() if leaf.word is not None]

    def phrases(self) -> list[tuple[str, int, int]]:
        """Return label, first word and end (one after the last word) of every phrase.

        A phrase comes after the phrases inside it. Words are counted from 0.

        Paper: section 6.3
        """
        found: list[tuple[str, int, int]] = []
        position = 0
        # A phrase is put back with its start, to be closed when its parts are done.
        waiting: list[tuple[Tree, int | None]] = [(self, None)]
        while waiting:
            node, start = waiting.pop()
            if node.word is not None:
                position += 1
            elif start is not None:
                found.append((node.label, start, position))
            else:
                waiting.append((node, position))
                waiting.extend((child, None) for child in reversed(node.children))
        return found

    def __str__(self) -> str:
        pieces: list[str] = []
        waiting: list[Tree | str] = [self]
        while waiting:
            node = waiting.pop()
            if isinstance(node, str):
                pieces.append(node)
            elif node.word is not None:
                pieces.append(f" ({node.label} {node.word})")
            else:
                pieces.append(f" ({node.label}")
                waiting += [")", *reversed(node.children)]
        return "".join(pieces).strip()


@dataclass(frozen=True)
class Treebank:
    """Trees by article.

    Args:
        name: of the treebank.
        licence: licence and attribution, in words.
        checksum: SHA-256, in hex, of the file that was read, or of all files of a folder.
        articles: the trees of each article, by its name, in the order of the text.

    Paper: section 6.3
    """

    name: str
    licence: str
    checksum: str
    articles: dict[str, list[Tree]]

    def trees(self, articles: Iterable[str] | None = None) -> list[Tree]:
        """Return the trees of some articles, or of all, one article after the other.

        Args:
            articles: their names; None for all.

        Raises:
            KeyError: if there is no such article.

        Paper: section 6.3
        """
        names = self.articles if articles is None else articles
        return [tree for name in names for tree in self.articles[name]]

    def __repr__(self) -> str:
        count = sum(map(len, self.articles.values()))
        return f"Treebank({self.name!r}, {len(self.articles)} articles, {count:,} trees)"


def read_trees(text: str, name: str = "text") -> Iterator[Tree]:
    """Read trees in brackets, as they stand: with traces and function tags.

    Args:
        text: any number of trees, on any number of lines.
        name: what to call the text in messages.

    Yields:
        The trees. The outermost pair of brackets, which has no label in Penn files, gives a tree
        with the label "".

    Raises:
        ValueError: if brackets do not match, are more than ``MOST_DEPTH`` deep, or a word stands
            where none can.

    Paper: section 6.3
    """
    labels: list[str] = []  # of the open phrases
    parts: list[list[Tree]] = []  # and what they hold so far
    leaves: dict[tuple[str, str], Tree] = {}  # one object for all that are equal
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
    """Reduce a tree to what parsers are asked for: no traces, no function tags, a labelled root.

    Empty elements go, and phrases that held nothing else. ``NP-SBJ-1`` and ``NP=2`` become
    ``NP``. A root without a label is taken off if it holds one phrase, and called ``TOP`` if not.

    Args:
        tree: as :func:`read_trees` gives it.

    Returns:
        The tree; None if nothing is left of it.

    Paper: section 6.3
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
    # A sign in front is part of the name, as in -LRB-.
    return label[0] + re.split("[-=]", label[1:], maxsplit=1)[0]


def load_treebank(source: Path | str = "craft", data_dir: Path | str | None = None) -> Treebank:
    """Load a treebank, every tree as :func:`plain` leaves it.

    Args:
        source: ``craft``, which is part of the package; or a folder, which is searched with all
            folders below it, or a ``.tar`` or ``.tar.gz`` file. Files that end in ``.mrg``,
            ``.prd`` or ``.tree`` are read, each as one article; others are passed over.
        data_dir: directory of the user's own files, searched first for ``craft``.

    Returns:
        The treebank.

    Raises:
        FileNotFoundError: if there is nothing of that name, or no file of trees in it.
        ValueError: if a file is damaged, or two files have the same name.

    Paper: section 6.3
    """
    craft = source == "craft"
    path = require_file(CRAFT_FILE, "craft-treebank", data_dir) if craft else Path(source)
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
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise ValueError(f"{name} is not UTF-8 text: {error}") from None
        with _no_collector():
            trees = (plain(tree) for tree in read_trees(text, name))
            articles[article] = [tree for tree in trees if tree is not None]
    if not articles:
        raise FileNotFoundError(f"{path} holds no file that ends in {', '.join(ENDINGS)}")
    licence = LICENCE if craft else "of the user's own files"
    return Treebank("craft" if craft else path.name, licence, checksum, articles)


@contextmanager
def _no_collector() -> Iterator[None]:
    """Keep Python from looking for cycles, which trees do not have: it takes half of the time."""
    running = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if running:
            gc.enable()


def _of_folder(folder: Path) -> tuple[list[tuple[str, bytes]], str]:
    """Read all files of trees, in the order of their paths, and one checksum of them all."""
    paths = sorted(path for path in folder.rglob("*") if path.suffix in ENDINGS and path.is_file())
    files = [(path.relative_to(folder).as_posix(), path.read_bytes()) for path in paths]
    digest = hashlib.sha256()
    for name, data in files:
        digest.update(f"{name}\0{len(data)}\0".encode() + data)
    return files, digest.hexdigest()


def _of_archive(path: Path) -> list[tuple[str, bytes]]:
    """Read all files of trees. Nothing is written, so no name in an archive can do harm."""
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


def split_articles(
    names: Iterable[str], validation: float = 0.05, test: float = 0.15
) -> dict[str, list[str]]:
    """Deal articles out to training, validation and test; an article is never in two of them.

    The Wall Street Journal's files (``wsj_0201``) are split as parsing always splits them:
    sections 2 to 21, 22 and 23; the others are left out. Any other articles are put into the
    order of the SHA-256 of their names, which has nothing to do with what they say.

    Args:
        names: of the articles, in any order.
        validation: share of the articles to validate on, at least one article.
        test: share of the articles to test on, at least one article.

    Returns:
        The names in ``train``, ``validation`` and ``test``.

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
        first, second = max(1, round(test * len(names))), max(1, round(validation * len(names)))
        split = {
            "train": sorted(order[first + second :]),
            "validation": sorted(order[first : first + second]),
            "test": sorted(order[:first]),
        }
    for part, articles in split.items():
        if not articles:
            raise ValueError(f"names must give each part an article, got none for {part}")
    return split
