"""A dictionary made from pairs, and the nearest sentence."""

from transformer.data.parallel import Split
from transformer_book.studies.simple_translators import NearestSentence, WordByWord

TRAIN = Split(
    ["the cat sees the dog.", "a cat sleeps.", "the dog sleeps.", "a bird sees a tree.",
     "the tree sleeps.", "the bird sleeps!", "a dog sees the tree."],
    ["die Katze sieht den Hund.", "eine Katze schläft.", "der Hund schläft.",
     "ein Vogel sieht einen Baum.", "der Baum schläft.", "der Vogel schläft!",
     "ein Hund sieht den Baum."],
)  # fmt: skip


def test_word_by_word():
    dictionary = WordByWord(TRAIN).dictionary
    expected = dict(cat="Katze", dog="Hund", bird="Vogel", tree="Baum", sleeps="schläft")
    assert {word: dictionary[word] for word in expected} == expected
    assert WordByWord(TRAIN).translate(["sleeps tree, zebra!", ""]) == ["Schläft Baum, zebra!", ""]


def test_the_nearest_sentence_shares_the_rarest_words():
    nearest = NearestSentence(TRAIN)
    assert nearest.translate(["the cat sees a dog.", "a bird sleeps!"]) == [
        "die Katze sieht den Hund.",
        "der Vogel schläft!",
    ]
    # Two sentences have the word; the shorter one has fewer others.
    assert nearest.find("cat") == 1
    assert [nearest.find(text) for text in TRAIN.source] == list(range(len(TRAIN)))
    assert nearest.translate(["zebra", ""]) == [TRAIN.target[0]] * 2
