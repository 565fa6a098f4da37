"""A tree as a sequence of brackets, so that parsing becomes translation, and back again.

``(S (NP XX )NP (VP XX (NP XX )NP )VP )S``: a bracket opens and closes with the label of its
phrase, and every word is the same ``XX``, as in Vinyals et al. (2015). With tags, each word is its
part of speech instead: ``(S (NP PRP )NP (VP VBP (NP NN )NP )VP )S``. The words themselves are on
the source side only.

The output of a model need not be a tree. It is repaired by rules that do not use the right answer,
and its faults are named, so that they can be counted.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass

from transformer.data.corpora.treebank import Tree

#: Replaces every word, unless tags do.
WORD = "XX"

#: Label of an added root, which scoring ignores.
ROOT = "TOP"

#: Faults of a sequence of brackets.
FAULTS = (
    "too few words",
    "too many words",
    "brackets that do not match",
    "brackets left open",
    "an empty phrase",
    "several roots",
)


def to_brackets(tree: Tree, tags: bool = False) -> list[str]:
    """Write a tree as brackets, one piece per word and two per phrase."""
    if tree.word is not None:
        return [tree.label if tags else WORD]
    inside = [piece for part in tree.children for piece in to_brackets(part, tags)]
    return [f"({tree.label}", *inside, f"){tree.label}"]


@dataclass(frozen=True)
class Parse:
    """A tree over given words, and what had to be repaired."""

    tree: Tree  #: the tag of a word is what was written for it, ``XX`` for a missing one
    faults: tuple[str, ...] = ()  #: of ``FAULTS``; empty if the sequence was a tree
    pieces: tuple[str, ...] = ()  #: the original sequence


def from_brackets(pieces: Sequence[str], words: Sequence[str]) -> Parse:
    """Read brackets as a tree over some words, and repair what is not a tree.

    A piece without a bracket, ``XX`` or a tag, takes the next word.

    - Surplus words are left out. Missing words go to the end of the root.
    - A closing bracket closes the innermost phrase of its label and all phrases inside it. If no
      phrase of its label is open, it is left out.
    - Phrases that are open at the end are closed there. Phrases without words are left out.
    - If there are several roots, or none, everything goes under a root ``TOP``.
    """
    if not words:
        raise ValueError("words must hold at least one word, got none")
    faults: set[str] = set()
    labels = [ROOT]  # the open phrases, outermost first
    parts: list[list[Tree]] = [[]]  # what they hold
    used = 0

    def close() -> None:
        label, children = labels.pop(), parts.pop()
        if children:
            parts[-1].append(Tree(label, tuple(children)))
        else:
            faults.add("an empty phrase")

    for piece in pieces:
        if not piece.startswith(("(", ")")):
            if used == len(words):
                faults.add("too many words")
                continue
            parts[-1].append(Tree(piece, (), words[used]))
            used += 1
        elif piece.startswith("("):
            labels.append(piece[1:])
            parts.append([])
        elif piece[1:] not in labels[1:]:
            faults.add("brackets that do not match")
        else:
            if labels[-1] != piece[1:]:
                faults.add("brackets that do not match")
            while labels[-1] != piece[1:]:
                close()
            close()
    if len(labels) > 1:
        faults.add("brackets left open")
    while len(labels) > 1:
        close()
    roots = parts[0]
    whole = len(roots) == 1 and roots[0].word is None
    if not whole:
        faults.add("several roots")
    root = roots[0] if whole else Tree(ROOT, tuple(roots))
    missing = tuple(Tree(WORD, (), word) for word in words[used:])
    if missing:
        faults.add("too few words")
    tree = Tree(root.label, root.children + missing)
    return Parse(tree, tuple(fault for fault in FAULTS if fault in faults), tuple(pieces))


class PartialTree:
    """The beginning of a tree over some words in ``room`` pieces, and what may come next."""

    def __init__(self, words: int, room: int):
        if words < 1 or room < words + 2:
            raise ValueError(
                f"words must be at least 1 and room at least words + 2, got {words} and {room}"
            )
        self.words_left, self.pieces_left = words, room
        self.open: list[str] = []  #: labels of the open phrases, outermost first
        self.pieces: list[str] = []  #: what has been written

    def copy(self) -> "PartialTree":
        """Return a copy that grows on its own."""
        made = copy(self)
        made.open, made.pieces = list(self.open), list(self.pieces)
        return made

    @property
    def complete(self) -> bool:
        """Whether the root is closed."""
        return bool(self.pieces) and not self.open

    def may_open(self) -> bool:
        """Whether a phrase may begin: a word is left for it, and room for both of its brackets."""
        needed = self.words_left + len(self.open)  # which words and closing brackets always find
        return self.words_left > 0 and self.pieces_left >= needed + 2

    def may_take_word(self) -> bool:
        """Whether the next word may come."""
        return bool(self.open) and self.words_left > 0

    def may_close(self) -> bool:
        """Whether the innermost phrase may end: not empty, and the root only after all words."""
        inside = len(self.open) > 1 or self.words_left == 0
        return bool(self.open) and not self.pieces[-1].startswith("(") and inside

    def add(self, piece: str) -> None:
        """Append a piece that may come next."""
        if piece.startswith("("):
            self.open.append(piece[1:])
        elif piece.startswith(")"):
            self.open.pop()
        else:
            self.words_left -= 1
        self.pieces.append(piece)
        self.pieces_left -= 1
