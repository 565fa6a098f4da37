"""A tree as a sequence of brackets, so that parsing becomes translation, and back again.

``(S (NP XX )NP (VP XX (NP XX )NP )VP )S``: a bracket opens and closes with the label of its
phrase, and every word is the same ``XX``, whatever its tag. The words themselves stand on the
source side only.

What a model writes need not be a tree. It is made one by rules that never look at the right answer,
and what was wrong with it is named, so that it can be counted.

Paper: section 6.3; the form is that of Vinyals et al. (2015), its reference 37
"""

from collections.abc import Sequence
from dataclasses import dataclass

from transformer.data.corpora.treebank import Tree

#: Stands for a word, whatever it is.
WORD = "XX"

#: Label of a root that had to be added. Scoring leaves it out.
ROOT = "TOP"

#: What can be wrong with a sequence of brackets, in words.
FAULTS = (
    "too few words",
    "too many words",
    "brackets that do not match",
    "brackets left open",
    "an empty phrase",
    "several roots",
)


def to_brackets(tree: Tree) -> list[str]:
    """Write a tree as brackets; words and their tags become ``XX``.

    Args:
        tree: any tree.

    Returns:
        One piece a word and two a phrase.

    Paper: section 6.3
    """
    pieces: list[str] = []
    waiting: list[Tree | str] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, str):
            pieces.append(node)
        elif node.word is not None:
            pieces.append(WORD)
        else:
            pieces.append(f"({node.label}")
            waiting += [f"){node.label}", *reversed(node.children)]
    return pieces


@dataclass(frozen=True)
class Parse:
    """A tree over exactly the words that were asked for, and what had to be mended.

    Args:
        tree: the tree; the tag of every word is ``XX``.
        faults: some of ``FAULTS``; none if the sequence was a tree as it stood.
        pieces: the sequence as it stood.

    Paper: section 6.3
    """

    tree: Tree
    faults: tuple[str, ...] = ()
    pieces: tuple[str, ...] = ()


def from_brackets(pieces: Sequence[str], words: Sequence[str]) -> Parse:
    """Read brackets as a tree over some words, and mend what is no tree.

    - A word too many is left out. Words that are missing go to the end of the root.
    - A closing bracket closes the innermost phrase of its label, and with it all phrases inside
      that. If none of its label is open, it is left out.
    - Phrases that are open at the end are closed there. Phrases without words are left out.
    - If there are several roots, or none, all goes under a root ``TOP``.

    Args:
        pieces: what a model wrote, without begin and end.
        words: of the sentence, at least one.

    Returns:
        The tree, with the faults that were found.

    Raises:
        ValueError: if there are no words, or a piece is neither a bracket nor ``XX``.

    Paper: section 6.3
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
        if piece == WORD:
            if used == len(words):
                faults.add("too many words")
                continue
            parts[-1].append(Tree(WORD, (), words[used]))
            used += 1
        elif piece.startswith("("):
            labels.append(piece[1:])
            parts.append([])
        elif not piece.startswith(")"):
            raise ValueError(f"pieces must be brackets or {WORD}, got {piece!r}")
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
    if len(roots) != 1 or roots[0].word is not None:
        faults.add("several roots")
    missing = tuple(Tree(WORD, (), word) for word in words[used:])
    if missing:
        faults.add("too few words")
        if len(roots) == 1 and roots[0].word is None:
            roots[0] = Tree(roots[0].label, roots[0].children + missing)
        else:
            roots.extend(missing)
    whole = len(roots) == 1 and roots[0].word is None
    tree = roots[0] if whole else Tree(ROOT, tuple(roots))
    return Parse(tree, tuple(fault for fault in FAULTS if fault in faults), tuple(pieces))
