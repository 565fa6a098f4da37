import pytest
from hypothesis import given
from hypothesis import strategies as st

from transformer.data.corpora.treebank import Tree, read_trees
from transformer_book.studies.parsing.linearised_trees import (
    FAULTS,
    PartialTree,
    from_brackets,
    to_brackets,
)

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


def test_a_tree_with_tags():
    [tree] = read_trees("(S (NP (PRP We)) (VP (VBP see) (-LRB- -LRB-)))")
    text = "(S (NP PRP )NP (VP VBP -LRB- )VP )S"
    assert " ".join(to_brackets(tree, tags=True)) == text
    assert read(text, "We see -LRB-") == (str(tree), ())


@given(TREES, st.booleans())
def test_there_and_back(tree, tags):
    parse = from_brackets(to_brackets(tree, tags), tree.words())
    assert parse.tree.phrases() == tree.phrases() and parse.tree.words() == tree.words()
    assert parse.faults == ()
    assert not tags or parse.tree == tree


def choices(partial, labels):
    """List the pieces that may come next, by the three rules."""
    found = [f"({label}" for label in labels if partial.may_open()]
    found += ["XX"] if partial.may_take_word() else []
    return found + ([f"){partial.open[-1]}"] if partial.may_close() else [])


@given(TREES)
def test_every_tree_may_be_written(tree):
    pieces = to_brackets(tree)
    partial = PartialTree(len(tree.words()), room=len(pieces))
    for piece in pieces:
        assert not partial.complete and piece in choices(partial, LABELS)
        partial.add(piece)
    assert partial.complete and choices(partial, LABELS) == [] and partial.pieces_left == 0


@given(st.data(), st.integers(1, 6), st.integers(2, 20))
def test_whatever_is_chosen_becomes_a_tree(data, length, extra):
    partial, pieces = PartialTree(length, room=length + extra), []
    while not partial.complete:
        pieces.append(data.draw(st.sampled_from(choices(partial, LABELS))))
        partial.add(pieces[-1])
    assert len(pieces) <= length + extra
    assert from_brackets(pieces, ["w"] * length).faults == ()


@pytest.mark.parametrize(("words", "room"), [(0, 5), (3, 4)])
def test_a_tree_needs_words_and_room(words, room):
    with pytest.raises(ValueError, match=f"got {words} and {room}"):
        PartialTree(words, room)


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
