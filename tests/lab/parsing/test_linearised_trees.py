import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.data.corpora.treebank import Tree, read_trees
from transformer.lab.parsing.linearised_trees import FAULTS, from_brackets, to_brackets

LABELS = ["S", "NP", "VP"]
LEAVES = st.sampled_from("abc").map(lambda word: Tree("NN", (), word))
PARTS = st.recursive(
    LEAVES,
    lambda part: st.builds(
        lambda label, parts: Tree(label, tuple(parts)),
        st.sampled_from(LABELS),
        st.lists(part, min_size=1, max_size=3),
    ),
)
TREES = st.builds(
    lambda label, parts: Tree(label, tuple(parts)),
    st.sampled_from(LABELS),
    st.lists(PARTS, min_size=1, max_size=3),
)
PIECES = ["XX", *(side + label for label in LABELS for side in "()")]


def read(text, words):
    parse = from_brackets(text.split(), words.split())
    assert parse.pieces == tuple(text.split())
    return str(parse.tree), parse.faults


def test_a_tree_in_brackets():
    [tree] = read_trees("(S (NP (PRP We)) (VP (VBP see) (NP (DT the) (NN cat))) (. .))")
    text = "(S (NP XX )NP (VP XX (NP XX XX )NP )VP XX )S"
    assert " ".join(to_brackets(tree)) == text
    back = "(S (NP (XX We)) (VP (XX see) (NP (XX the) (XX cat))) (XX .))"
    assert read(text, "We see the cat .") == (back, ())


@given(TREES)
def test_there_and_back(tree):
    parse = from_brackets(to_brackets(tree), tree.words())
    assert parse.tree.phrases() == tree.phrases() and parse.tree.words() == tree.words()
    assert parse.faults == ()


@given(st.lists(st.sampled_from(PIECES), max_size=30), st.integers(1, 8))
def test_whatever_comes_becomes_a_tree_over_the_words(pieces, length):
    words = [f"w{i}" for i in range(length)]
    parse = from_brackets(pieces, words)
    assert parse.tree.words() == words
    assert all(start < end for _, start, end in parse.tree.phrases())
    # No fault is reported if and only if the pieces were that tree.
    assert (to_brackets(parse.tree) == pieces) == (parse.faults == ())


@pytest.mark.parametrize(
    ("text", "words", "tree", "faults"),
    [
        ("(S XX )S", "a b", "(S (XX a) (XX b))", ("too few words",)),
        ("(S XX XX )S", "a", "(S (XX a))", ("too many words",)),
        ("(S (NP XX )S", "a", "(S (NP (XX a)))", ("brackets that do not match",)),
        ("(S XX )NP )S", "a", "(S (XX a))", ("brackets that do not match",)),
        ("(S (NP XX", "a", "(S (NP (XX a)))", ("brackets left open",)),
        ("(S (NP )NP XX )S", "a", "(S (XX a))", ("an empty phrase",)),
        ("(S XX )S (NP XX )NP", "a b", "(TOP (S (XX a)) (NP (XX b)))", ("several roots",)),
        ("XX", "a", "(TOP (XX a))", ("several roots",)),
        ("", "a b", "(TOP (XX a) (XX b))", ("too few words", "several roots")),
        # A root is mended with what is missing, and stays the root.
        ("(S (NP XX )NP", "a b", "(S (NP (XX a)) (XX b))", ("too few words", "brackets left open")),
    ],
)
def test_faults(text, words, tree, faults):
    assert read(text, words) == (tree, faults)
    assert set(faults) <= set(FAULTS)
