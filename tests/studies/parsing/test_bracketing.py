"""Counts of phrases, compared with counts by hand."""

import pytest

from transformer.data.corpora.treebank import read_trees
from transformer_book.studies.parsing.bracketing import (
    Bracketing,
    by_length,
    compare,
    compare_all,
    counted_phrases,
)
from transformer_book.studies.parsing.linearised_trees import to_brackets
from transformer_book.studies.parsing.simple_parsers import (
    common_brackets,
    flat_tree,
    right_branching_tree,
)

GOLD = (
    "(S (NP (PRP I)) (VP (VBD saw) (NP (NP (DT a) (NN cat)) (PP (IN with) (NP (PRP it))))) (. .))"
)


def tree(text):
    [found] = read_trees(text)
    return found


def counts(gold, predicted):
    found = compare(tree(gold), tree(predicted))
    return found.matched, found.gold, found.predicted


def test_a_phrase_attached_elsewhere():
    # "with it" hangs from the verb: NP over "a cat with it" is missing, all else is there.
    other = "(S (NP (X I)) (VP (X saw) (NP (X a) (X cat)) (PP (X with) (NP (X it)))) (X .))"
    assert counts(GOLD, other) == (6, 7, 6)
    found = compare(tree(GOLD), tree(other))
    assert found.precision == 100 and found.recall == pytest.approx(600 / 7)
    assert found.f1 == pytest.approx(1200 / 13) and found.exact_match == 0


@pytest.mark.parametrize(
    "gold, other, expected",
    [
        ("(S (NP (NN a)) (VP (VB b)))", "(S (NP (X a)) (NP (X b)))", (2, 3, 3)),  # labels count
        ("(S (NP (NN a)) (VB b))", "(S (NP (VB a)) (NN b))", (2, 2, 2)),  # tags do not
        ("(S (PRN (-LRB- [) (NN a) (-RRB- ])) (VP (VB c)))",  # brackets are not punctuation
         "(S (X [) (PRN (X a)) (X ]) (VP (X c)))", (2, 3, 3)),
        ("(TOP (S (NP (NN a)) (VB b)))", "(S (NP (X a)) (X b))", (2, 2, 2)),
        ("(S1 (S (NP (NN a)) (VB b)))", "(S (NP (X a)) (X b))", (2, 2, 2)),
        ("(VP (VB a) (PRT (RP b)))", "(VP (X a) (ADVP (X b)))", (2, 2, 2)),
    ],
)  # fmt: skip
def test_rules_of_evalb(gold, other, expected):
    assert counts(gold, other) == expected


def test_punctuation_is_taken_out_by_the_gold_tags():
    gold = "(S (NP (NN a) (, ,) (NN b)) (: ;) (VP (VB c)) (. .))"
    # The comma and the stop hang elsewhere, and the other tree tags "a" as a comma: all the same.
    other = "(S (NP (, a) (X ,) (X b) (X ;)) (VP (X c) (X .)))"
    assert counts(gold, other) == (3, 3, 3)
    assert counts("(S (PRN (: -)) (VP (VB c)))", "(S (NP (X -)) (VP (X c)))") == (2, 2, 2)


def test_two_equal_phrases_must_both_be_found():
    twice, once = "(S (NP (NP (NN a))) (VB b))", "(S (NP (X a)) (X b))"
    assert counts(twice, once) == (2, 3, 2)
    assert counts(twice, twice) == (3, 3, 3)
    assert counts("(S (NP (NN a)) (VB b))", "(S (NP (NP (X a))) (X b))") == (2, 2, 3)
    assert counted_phrases(tree(twice), tree(twice))["NP", 0, 1] == 2


def test_sentences_are_added_before_shares_are_taken():
    gold = [tree("(S (NP (NN a)) (VP (VB b)))"), tree("(NP (NN a))")]
    guess = [tree("(S (NP (X a)) (VP (X b)))"), tree("(VP (X a))")]
    found = compare_all(gold, guess)
    assert found == Bracketing(matched=3, gold=4, predicted=4, exact=1, sentences=2)
    assert found.f1 == 75 and found.exact_match == 50  # a mean over sentences would give F1 50


def test_other_words_are_an_error():
    with pytest.raises(ValueError, match="words"):
        compare(tree("(S (NN a) (NN b))"), tree("(S (NN a))"))


def test_groups_of_length():
    gold = [tree("(NP (NN a))"), tree("(NP (NN a) (NN b))"), tree(GOLD)]
    guess = [tree("(NP (X a))"), tree("(VP (X a) (X b))"), tree(GOLD)]
    groups = by_length(gold, guess, bounds=(1, 2, 4))
    assert list(groups) == ["1-1", "2-2", "5+"]
    assert [group.f1 for group in groups.values()] == [100, 0, 100]
    assert groups["5+"].sentences == 1 and groups["5+"].gold == 7


def test_parsers_that_look_at_nothing():
    gold = [tree(GOLD), tree("(S (NP (NN a)) (VP (VB b)))")]
    words = gold[0].words()
    flat, right = flat_tree(words, "S"), right_branching_tree(words, "S", "NP")
    assert flat.phrases() == [("S", 0, 7)]
    spans = [(start, end) for _, start, end in right.phrases()]
    assert sorted(spans) == [(i, 7) for i in range(6)]
    # S (0,6), NP (2,6) and NP (5,6): the right-branching tree has NP (5,7), which without its stop
    # is (5,6). Six phrases in all.
    found = compare(gold[0], right)
    assert (found.matched, found.gold, found.predicted) == (3, 7, 6)
    assert right_branching_tree(["a"], "S", "NP").phrases() == [("S", 0, 1)]


def test_the_most_frequent_brackets_of_a_length():
    trees = [tree("(NP (NN a))"), tree("(VP (VB a))"), tree("(VP (VB b))"), tree(GOLD)]
    found = common_brackets(trees)
    assert found == {1: ("(VP", "XX", ")VP"), 7: tuple(to_brackets(tree(GOLD)))}
