"""Merges from scratch are the library's, in number, in order and in what they make of a text."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers, trainers

from transformer.data.corpora import load_corpus
from transformer.data.tokenizer import SPECIAL_TOKENS, Tokenizer
from transformer.saving.locate import locate
from transformer_book.studies.tokens import merges

SMALLEST = len(SPECIAL_TOKENS) + 256


@pytest.fixture(scope="module")
def corpus():
    return load_corpus("tatoeba-en-de")


# Few letters, so that ties, overlaps ("aaa") and pieces within pieces are common.
FEW_LETTERS = st.lists(st.text("abä ", min_size=1, max_size=14), min_size=1, max_size=8)
MANY_SIGNS = st.lists(st.text("abcdxyzß 019.,'_-\n", min_size=1, max_size=20), max_size=8)


@given(texts=FEW_LETTERS | MANY_SIGNS, num_merges=st.integers(0, 25))
def test_merges_are_those_of_the_library(texts, num_merges):
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=len(alphabet) + num_merges, initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator(texts, trainer)
    with tempfile.TemporaryDirectory() as folder:
        backend.save(f"{folder}/tokenizer.json")
        expected = merges.read_merges(Path(folder, "tokenizer.json"))
    assert merges.learn_merges(merges.count_words(texts), num_merges) == expected


def test_words_are_split_as_the_library_splits_them(corpus):
    library = pre_tokenizers.ByteLevel(add_prefix_space=False)
    odd = ["", "  two blanks ", "don't we'll 'twas", "a1b2 3,000.50 _x_ ¿Qué? œ ß\t\n\u2009x"]
    for text in [*corpus.test.source, *corpus.test.target, *odd]:
        cuts = [text[start:end] for _, (start, end) in library.pre_tokenize_str(text)]
        assert merges.split_words(text) == cuts


def test_pieces_are_those_of_the_library(corpus):
    folder = locate("tatoeba-en-de").folder
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    rank = {pair: place for place, pair in enumerate(merges.read_merges(folder / "tokenizer.json"))}
    number = {bytes([byte]): 3 + place for place, byte in enumerate(merges.BYTE_ORDER)}
    number |= {left + right: SMALLEST + place for (left, right), place in rank.items()}
    for text in [*corpus.test.source[:300], *corpus.test.target[:300], "🙂 naïve ǅ aaaaaa"]:
        pieces = [
            piece for word in merges.split_words(text) for piece in merges.apply_merges(word, rank)
        ]
        assert b"".join(pieces).decode() == text
        assert [number[piece] for piece in pieces] == tokenizer.encode(text)
