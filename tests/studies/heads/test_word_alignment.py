"""Aligners, error rates and hand-aligned pairs; words made of tokens and back."""

import numpy as np
import pytest
import torch

from transformer.data.corpora import load_corpus
from transformer.data.parallel import Split
from transformer.data.tokenizer import Tokenizer
from transformer.inference.translator import Translator
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer_book.studies.simple_translators import words_of
from transformer_book.studies.what_heads_learn.attention_alignment import (
    cross_word_weights,
    strongest_links,
    token_links,
    token_words,
    word_weights,
)
from transformer_book.studies.what_heads_learn.word_alignment import (
    AlignedPair,
    WordAligner,
    aligned_both_ways,
    alignment_error_rate,
    hand_aligned,
)

TEXT = Split(
    ["the house", "the book", "a book", "a big house", "the big book", "a house"],
    ["das Haus", "das Buch", "ein Buch", "ein Haus groß", "das Buch groß", "ein Haus"],
)


def test_words_compete_for_each_other():
    aligner = WordAligner(TEXT, iterations=30, sharpness=0.5)
    found = aligner.align(["the", "big", "house"], ["das", "haus", "groß"])
    assert found == {(0, 0), (1, 2), (2, 1)}  # across the diagonal, and never seen together
    table = aligner.probabilities(["the", "book"], ["buch"])
    assert table.shape == (1, 3) and table.sum() == pytest.approx(1)
    assert table[0].argmax() == 2 and table[0, 2] > 0.8


def test_three_steps_as_in_the_textbook():
    pairs, none = [("a b", "x y"), ("a", "x"), ("b c", "y y z")], 0.2
    table: dict = {}
    for _ in range(3):
        counts: dict = {}
        for source, target in pairs:
            words = ["", *source.split()]
            prior = [none] + [(1 - none) / (len(words) - 1)] * (len(words) - 1)
            for t in target.split():
                shares = [p * table.get((s, t), 1.0) for s, p in zip(words, prior, strict=True)]
                for s, share in zip(words, shares, strict=True):
                    counts[s, t] = counts.get((s, t), 0.0) + share / sum(shares)
        totals = {s: sum(n for (w, _), n in counts.items() if w == s) for s, _ in counts}
        table = {(s, t): n / totals[s] for (s, t), n in counts.items()}
    aligner = WordAligner(Split(*map(list, zip(*pairs, strict=True))), 3, sharpness=0, none=none)
    shares = [none * table["", "y"], 0.4 * table["a", "y"], 0.4 * table["b", "y"]]
    found = aligner.probabilities(["a", "b"], ["y"])
    np.testing.assert_allclose(found, [np.array(shares) / sum(shares)])


def test_positions_decide_between_equal_words_and_unknown_words_are_no_error():
    aligner = WordAligner(Split(["a a a", "b"], ["x x x", "y"]))
    assert aligner.align(["a", "a", "a"], ["x", "x", "x"]) == {(0, 0), (1, 1), (2, 2)}
    assert aligner.align([], ["x"]) == aligner.align(["a"], []) == frozenset()
    table = aligner.probabilities(["zebra"], ["gnu"])
    assert np.isfinite(table).all() and table.sum() == pytest.approx(1)


def test_links_of_both_directions_are_sure_and_those_of_one_possible():
    class Says(WordAligner):
        def __init__(self, *links):
            self.links = frozenset(links)

        def align(self, source, target):
            return self.links

    (pair,) = aligned_both_ways([("a b", "x y")], Says((0, 1), (1, 0)), Says((1, 0), (1, 1)))
    assert pair.sure == {(0, 1)} and pair.possible == {(0, 1), (1, 0), (1, 1)}


def test_error_rate():
    right = [AlignedPair("", "", frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (1, 2)}))]
    for links, expected in (
        ({(0, 0), (1, 1)}, 0.0),
        ({(0, 0), (1, 1), (1, 2)}, 0.0),  # a possible link is no error
        ({(0, 0)}, 1 - 2 / 3),  # a missing one is an error
        ({(0, 0), (1, 1), (2, 2)}, 1 - 4 / 5),
        ({(5, 5)}, 1.0),
    ):
        assert alignment_error_rate([frozenset(links)], right) == pytest.approx(expected)


def test_hand_aligned_pairs_are_whole_and_of_the_test_split():
    pairs = hand_aligned()
    assert 20 <= len(pairs) == len({pair.source for pair in pairs})
    test = set(load_corpus("tatoeba-en-de").test)
    for pair in pairs:
        assert (pair.source, pair.target) in test
        assert pair.sure <= pair.possible
        # The final punctuation is linked, and most words have a sure link.
        last = len(words_of(pair.source)) - 1, len(words_of(pair.target)) - 1
        assert last in pair.sure
        assert all(0 <= i <= last[0] and 0 <= j <= last[1] for i, j in pair.possible)
        assert len({i for i, _ in pair.sure}) > 0.6 * len(words_of(pair.source))


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.train(["der Bär schläft, der Bär!", "the bear sleeps, Tom's bear."], 270)


def test_each_token_belongs_to_a_word(tokenizer):
    text = "Tom's Bär schläft, Bär!"
    words, ids = token_words(tokenizer, text), tokenizer.encode(text)
    assert len(words) == len(ids) and words == sorted(words)
    for number, word in enumerate(words_of(text)):
        own = [token for token, at in zip(ids, words, strict=True) if at == number]
        assert tokenizer.decode(own).strip().lower() == word


def test_words_get_sums_and_means():
    weights = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.0, 0.5, 0.5, 0.0],
                        [1.0, 0.0, 0.0, 0.0]])  # fmt: skip
    # Target tokens 0 and 1 are word 0, token 2 is word 1; source tokens 1 and 2 are word 1.
    found = word_weights(weights, [0, 0, 1], [0, 1, 1], "writes")
    np.testing.assert_allclose(found, [[0.25, 0.5], [0.0, 1.0]])
    found = word_weights(weights, [0, 0, 1], [0, 1, 1], "has read")
    np.testing.assert_allclose(found, [[0.2, 0.75], [1.0, 0.0]])
    assert strongest_links(found) == {(1, 0), (0, 1)}


def test_links_of_a_real_pair(tokenizer):
    torch.manual_seed(0)
    config = TransformerConfig(270, d_model=8, d_ff=8, num_heads=2, num_layers=3)
    translator = Translator(Transformer(config), tokenizer)
    links = frozenset({(1, 0)})
    pair = AlignedPair("the bear", "Bär schläft", links, links | {(0, 1)})
    source, target = token_words(tokenizer, pair.source), token_words(tokenizer, pair.target)
    found = token_links(translator, pair)
    assert found.shape == (len(source), len(target))
    expected = [
        (s, t) for s, i in enumerate(source) for t, j in enumerate(target) if (i, j) == (1, 0)
    ]
    assert [tuple(place) for place in np.argwhere(found).tolist()] == expected

    weights = cross_word_weights(translator, pair, "has read")
    assert weights.shape == (3, 2, 2, 2)
    maps = translator.attention(pair.source, pair.target).cross
    np.testing.assert_allclose(weights, word_weights(maps, target, source, "has read"))
