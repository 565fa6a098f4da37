"""Parsers that ignore the words: baselines for an F1."""

from collections import Counter
from collections.abc import Sequence

from transformer.data.corpora.treebank import Tree
from transformer_book.studies.parsing.linearised_trees import WORD, to_brackets


def flat_tree(words: Sequence[str], root: str) -> Tree:
    """Put all words, at least one, into one phrase."""
    return Tree(root, tuple(Tree(WORD, (), word) for word in words))


def right_branching_tree(words: Sequence[str], root: str, inner: str) -> Tree:
    """Open a phrase at every word but the last, and close them all at the end."""
    tree = Tree(WORD, (), words[-1])
    for i in range(len(words) - 2, -1, -1):
        tree = Tree(inner if i else root, (Tree(WORD, (), words[i]), tree))
    return tree if len(words) > 1 else Tree(root, (tree,))


def common_brackets(trees: Sequence[Tree]) -> dict[int, tuple[str, ...]]:
    """Return, by the number of words, the brackets that most trees have."""
    found: dict[int, Counter[tuple[str, ...]]] = {}
    for tree in trees:
        found.setdefault(len(tree.leaves()), Counter())[tuple(to_brackets(tree))] += 1
    return {length: seen.most_common(1)[0][0] for length, seen in found.items()}
