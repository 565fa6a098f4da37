import matplotlib.pyplot as plt
import pytest

from transformer.data.corpora.treebank import read_trees
from transformer_book.palette import COLOURS
from transformer_book.studies.parsing.drawing import draw_tree


@pytest.fixture
def axes():
    figure, axes = plt.subplots()
    yield axes
    plt.close(figure)


def tree(text):
    [found] = read_trees(text)
    return found


GOLD = tree("(S (NP (PRP I)) (VP (VBD saw) (NP (DT a) (NN cat))) (. .))")


def marked(axes):
    return [text.get_text() for text in axes.texts if text.get_color() == COLOURS["vermilion"]]


def test_words_are_below_their_phrases(axes):
    draw_tree(axes, GOLD)
    place = {text.get_text(): text.get_position() for text in axes.texts}
    words = GOLD.words()
    assert [place[word] for word in words] == [(i, 0) for i in range(5)]
    assert place["VP"] == (1.75, 2) and place["S"] == (2, 3)
    # A line from each part to the phrase that it is a part of.
    assert len(axes.lines) == len(words) + len(GOLD.phrases()) - 1
    assert not marked(axes) and not axes.axison


def test_what_the_right_tree_does_not_have_is_marked(axes):
    guess = tree("(S (NP (X I)) (VP (X saw)) (NP (X a) (ADJP (X cat) (X .))))")
    draw_tree(axes, guess, GOLD)
    # VP covers too few words, ADJP is no phrase; S and both NP are right without punctuation.
    assert sorted(marked(axes)) == ["ADJP", "VP"]
