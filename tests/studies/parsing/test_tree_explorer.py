"""The stepper builds the tree that the repairs make, and loads nothing."""

import random

import pytest

from tests.self_contained import self_contained
from transformer.data.corpora.treebank import Tree, read_trees
from transformer_book.studies.parsing.linearised_trees import ROOT, from_brackets
from transformer_book.studies.parsing.tree_explorer import TreeExplorer, events

(GOLD,) = read_trees("(S (NP (DT the) (NN cat)) (VP (VB sleeps)))")
WRITTEN = ["(S", "(NP", "XX", "XX", ")NP", "(VP", "XX", ")VP", ")S"]


def rebuilt(pieces, words):
    """Phrases of the tree that the events build, as the script of the page does."""
    top, missing = [], events(pieces, len(words))[-1][1]
    used, stack = 0, [top]  # an open phrase is a list of parts, after its label

    def close():
        done = stack.pop()
        if len(done) == 1:
            stack[-1].remove(done)

    for piece, (what, number) in zip(pieces, events(pieces, len(words)), strict=False):
        if what == "open":
            stack[-1].append([piece[1:]])
            stack.append(stack[-1][-1])
        elif what == "word":
            stack[-1].append(words[used])
            used += 1
        for _ in range(number if what == "close" else 0):
            close()
    while len(stack) > 1:
        close()
    only = top[0] if len(top) == 1 and isinstance(top[0], list) else top
    only += words[len(words) - missing :]

    def tree(part):
        if isinstance(part, str):
            return Tree("XX", (), part)
        return Tree(part[0], tuple(map(tree, part[1:])))

    whole = len(top) == 1 and isinstance(top[0], list)
    return tree(top[0]) if whole else Tree(ROOT, tuple(map(tree, top)))


def test_the_events_build_the_tree_of_the_repairs():
    draw, words = random.Random(0), ["a", "b", "c", "d"]
    kinds = "XX", "(S", ")S", "(NP", ")NP"
    for _ in range(500):
        pieces = draw.choices(kinds, weights=(4, 2, 2, 2, 2), k=draw.randrange(12))
        assert events(pieces, 4)[-1] == ("end", max(0, 4 - pieces.count("XX")))
        found = rebuilt(pieces, list(words))
        assert str(found) == str(from_brackets(pieces, words).tree), pieces


def test_it_is_small_repeatable_and_loads_nothing():
    def make():
        short = ["(S", "(NP", "XX", ")NP", ")VP"]
        return TreeExplorer([("right", GOLD, WRITTEN), ("wrong", GOLD, short)], step=3)

    right, wrong = self_contained(make, 100_000)["examples"]
    assert (right["f1"], right["faults"]) == (100, []) and wrong["f1"] < 100
    assert wrong["events"][-2:] == [["skip", 0], ["end", 2]]
    assert "F1 100%" in make().alt


def test_a_step_that_is_not_there():
    with pytest.raises(ValueError, match="step"):
        TreeExplorer([("right", GOLD, WRITTEN)], step=len(WRITTEN) + 1)
    with pytest.raises(ValueError, match="one sentence"):
        TreeExplorer([])
