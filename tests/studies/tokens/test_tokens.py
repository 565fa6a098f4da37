"""What the chapter types is the library: merges, in number and in order, and ids of any text."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers import models, pre_tokenizers, trainers

from transformer.data.corpora import load_corpus
from transformer.data.tokenizer import Tokenizer
from transformer_book.studies.tokens.merges import WORD, count_words, read_merges

CHAPTER = Path(__file__).resolve().parents[3] / "notebooks" / "13_tokens.ipynb"
SHIPPED = Tokenizer.from_pretrained("tatoeba-en-de")
# Few letters, so that ties, overlaps ("aaa") and pieces within pieces are common.
FEW_LETTERS = st.lists(st.text("abä ", min_size=1, max_size=14), min_size=1, max_size=8)
MANY_SIGNS = st.lists(st.text("abcdxyzß 019.,'_-\n", min_size=1, max_size=20), max_size=8)


@pytest.fixture(scope="module")
def typed():
    """The definitions of the chapter, with the shipped merges."""
    space = dict(shipped=read_merges(SHIPPED.to_json()))
    wanted = {"imports", "split", "join", "learn", "older", "numbers", "encode"}
    for cell in json.loads(CHAPTER.read_text(encoding="utf-8"))["cells"]:
        if cell["id"] in wanted:
            exec("".join(cell["source"]), space)
            wanted.remove(cell["id"])
    assert not wanted
    return space


@given(texts=FEW_LETTERS | MANY_SIGNS, num_merges=st.integers(0, 25))
def test_merges_are_those_of_the_library(typed, texts, num_merges):
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=len(alphabet) + num_merges, initial_alphabet=alphabet, show_progress=False
    )
    backend.train_from_iterator(texts, trainer)
    expected = read_merges(backend.to_str())
    found = typed["learn"](count_words(texts), len(expected), typed["older_first"])
    assert found == expected and len(expected) <= num_merges


def test_texts_are_split_and_numbered_as_the_library_does_and_come_back(typed):
    assert typed["WORD"].pattern == WORD.pattern
    corpus, library = load_corpus("tatoeba-en-de"), pre_tokenizers.ByteLevel(add_prefix_space=False)
    odd = ["", "  two blanks ", "don't we'll 'twas", "a1b2 3,000.50 _x_ ¿Qué? œ ß\t\n\u2009x"]
    for text in [*corpus.test.source, *corpus.test.target, *odd, "🙂 naïve ǅ aaaaaa"]:
        cuts = [text[start:end] for _, (start, end) in library.pre_tokenize_str(text)]
        assert WORD.findall(text) == cuts
        assert typed["encode"](text) == SHIPPED.encode(text)
        assert typed["decode"](typed["encode"](text)) == text
