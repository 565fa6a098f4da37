"""Merges from scratch are the library's, in number, in order and in what they make of a text."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers, trainers

from transformer.data.corpora import load_corpus
from transformer.data.tokenizer import SPECIAL_TOKENS, Tokenizer
from transformer.saving.locate import locate
from transformer_book.studies.tokens.merges import (
    BYTE_ORDER,
    apply_merges,
    count_words,
    learn_merges,
    read_merges,
    split_words,
)

SMALLEST = len(SPECIAL_TOKENS) + 256


@pytest.fixture(scope="module")
def corpus():
    return load_corpus("tatoeba-en-de")


@pytest.fixture(scope="module")
def merges_of_the_library(tmp_path_factory):
    """Merges and tokenizer of the library; texts may support fewer merges than are asked for."""
    path = tmp_path_factory.mktemp("library") / "tokenizer.json"

    def train(texts, num_merges):
        backend = Backend(models.BPE())
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(
            vocab_size=SMALLEST + num_merges,
            special_tokens=list(SPECIAL_TOKENS),
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        backend.train_from_iterator(texts, trainer)
        path.write_text(backend.to_str(), encoding="utf-8")
        return read_merges(path)

    return train


# Few letters, so that ties, overlaps ("aaa") and pieces within pieces are common.
few_letters = st.lists(st.text("abä ", min_size=1, max_size=14), min_size=1, max_size=8)
many_signs = st.lists(st.text("abcdxyzß 019.,'_-\n", min_size=1, max_size=20), max_size=8)


@given(texts=few_letters | many_signs, num_merges=st.integers(0, 25))
def test_merges_are_those_of_the_library(merges_of_the_library, texts, num_merges):
    assert learn_merges(count_words(texts), num_merges) == merges_of_the_library(texts, num_merges)


def test_a_tie_goes_to_the_older_piece_and_bytes_are_older_than_merges():
    # "ab", "cd", "xy" and "ü" (two bytes above 0x7F) occur twice each.
    merges = learn_merges(count_words(["xy", "cd", "ab", "ü"] * 2), 4)
    assert merges == [(b"a", b"b"), (b"c", b"d"), (b"x", b"y"), (b"\xc3", b"\xbc")]
    # The blank is not printable in Latin-1, so it is younger than all letters.
    assert learn_merges(count_words([" a", "zz"]), 1) == [(b"z", b"z")]


def test_words_are_split_as_the_library_splits_them(corpus):
    library = pre_tokenizers.ByteLevel(add_prefix_space=False)
    odd = ["", "  two blanks ", "don't we'll 'twas", "a1b2 3,000.50 _x_ ¿Qué? œ ß\t\n\u2009x"]
    for text in [*corpus.test.source, *corpus.test.target, *odd]:
        cuts = [text[start:end] for _, (start, end) in library.pre_tokenize_str(text)]
        assert split_words(text) == cuts


def test_pieces_are_those_of_the_library(corpus):
    folder = locate("tatoeba-en-de").folder
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    rank = {pair: place for place, pair in enumerate(read_merges(folder / "tokenizer.json"))}
    number = {bytes([byte]): 3 + place for place, byte in enumerate(BYTE_ORDER)}
    number |= {left + right: SMALLEST + place for (left, right), place in rank.items()}
    for text in [*corpus.test.source[:300], *corpus.test.target[:300], "🙂 naïve ǅ aaaaaa"]:
        pieces = [piece for word in split_words(text) for piece in apply_merges(word, rank)]
        assert b"".join(pieces).decode() == text
        assert [number[piece] for piece in pieces] == tokenizer.encode(text)


@pytest.mark.usefixtures("unchecked")
def test_the_shipped_merges_are_those_of_the_training_text(corpus):
    words = count_words([*corpus.train.source, *corpus.train.target])
    shipped = read_merges(locate("tatoeba-en-de").folder / "tokenizer.json")
    assert learn_merges(words, 200) == shipped[:200]


def test_both_ways_to_write_a_merge_are_read(tmp_path):
    for merges in (["a b", "Ġ c"], [["a", "b"], ["Ġ", "c"]]):
        (tmp_path / "t.json").write_text(json.dumps({"model": {"merges": merges}}))
        assert read_merges(tmp_path / "t.json") == [(b"a", b"b"), (b" ", b"c")]
