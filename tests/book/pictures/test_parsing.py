"""The pictures of parsing show the brackets of their tree, and the F1 that the package counts."""

from drawn import words

from transformer.data.corpora.treebank import read_trees
from transformer_book.pictures.results.parsing import (
    COMPARED,
    PARSED,
    WRITTEN,
    phrases_compared,
    tree_and_brackets,
)
from transformer_book.studies.parsing.bracketing import compare
from transformer_book.studies.parsing.linearised_trees import from_brackets, to_brackets


def test_the_brackets_are_those_of_the_tree():
    (tree,) = read_trees(PARSED)
    for drawing in tree_and_brackets().drawn:
        found = words(drawing)
        assert [w for w in found if w[0] in "()" or w == "XX"] == to_brackets(tree)
        labels = [label for label, _, _ in tree.phrases()]
        assert sorted(w for w in found if w in labels) == sorted(labels)


def test_f1_is_the_packages():
    (gold,) = read_trees(COMPARED)
    found = compare(gold, from_brackets(WRITTEN.split(), gold.words()).tree)
    said = f"F1 = 2 · {found.matched} / ({found.gold} + {found.predicted}) = {found.f1:.0f}%"
    for drawing in phrases_compared().drawn:
        assert said in words(drawing)
        assert words(drawing).count("in both") == found.matched
