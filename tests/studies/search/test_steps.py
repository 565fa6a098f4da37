"""The fully recorded search is the package's search."""

import pytest
import torch

from transformer import Translator
from transformer_book.studies.decoding.steps import record_search

PENALTIES = [(0.0, "gnmt"), (0.6, "gnmt"), (0.6, "fairseq")]


@pytest.fixture(scope="module")
def translator():
    return Translator.from_pretrained("tatoeba-en-de")


def ids(translator, text):
    tokenizer = translator.tokenizer
    return torch.tensor([[*tokenizer.encode(text), tokenizer.eos_id]])


@pytest.fixture(scope="module", params=["Tom warned you.", "She asked me to help her."])
def recorded(request, translator):
    source = ids(translator, request.param)
    return source, record_search(translator.model, source, 4, PENALTIES)


def test_endings_and_beginnings_are_those_of_the_trace(recorded):
    _, search = recorded
    seen = [found for step in search.steps for found in step]
    ended = [(list(f.tokens[:-1]), f.log_probability) for f in seen if f.fate == "ended"]
    assert [tokens for tokens, _ in ended] == [tokens for tokens, _ in search.trace.endings]
    totals = [total for _, total in search.trace.endings]
    assert [total for _, total in ended] == pytest.approx(totals, abs=1e-3)
    alive = [[f.log_probability for f in step if f.fate == "alive"] for step in search.steps]
    assert [best[0] for best in alive] == pytest.approx(search.trace.alive, abs=1e-3)
    assert all(len(best) == 4 for best in alive)
