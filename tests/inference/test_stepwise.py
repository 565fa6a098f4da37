"""The next token's log-probabilities, and the best of them."""

import math
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer.inference.stepwise import (
    BatchRows,
    best_tokens,
    next_log_probabilities,
    read_ended,
)
from transformer.model.base import TranslationModel


class Fixed(TranslationModel):
    """A model that always returns the same logits."""

    encode = decoder_states = output_weight = start_decoding = None

    def __init__(self, logits):
        super().__init__(SimpleNamespace(pad_id=0, bos_id=1, eos_id=2))
        self.fixed = torch.tensor(logits)

    def decode_next(self, tokens, state):
        return self.fixed


def test_log_probabilities_are_those_of_the_model_except_at_padding_and_bos():
    logits = [[3.0, 1.0, 0.5, -2.0], [0.0, 0.0, 0.0, 5.0]]
    found = next_log_probabilities(Fixed(logits), torch.tensor([1, 1]), None)
    expected = torch.tensor(logits).log_softmax(-1)
    torch.testing.assert_close(found[:, 2:], expected[:, 2:])  # padding keeps its share
    assert (found[:, :2] == -math.inf).all()
    assert (found <= 0).all()


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("place", [0, 3])
def test_a_logit_that_is_no_number_is_an_error(bad, place):
    logits = [[0.0] * 4, [0.0] * 4]
    logits[1][place] = bad
    found = next_log_probabilities(Fixed(logits), torch.tensor([1, 1]), None)
    with pytest.raises(ValueError, match="not finite"):
        read_ended(torch.tensor([False, True]), found, eos_id=2)


def test_the_last_rows_take_the_places_of_those_that_end():
    rows = BatchRows(9, torch.device("cpu"))
    assert rows.compact() is None  # none has ended
    ended = [place in (1, 3, 8) for place in range(9)]
    assert rows.newly_ended(ended) == [1, 3, 8]
    assert rows.newly_ended(ended) == []
    assert rows.compact().tolist() == [0, 6, 2, 7, 4, 5] == rows.sentences


@settings(deadline=None, derandomize=True, max_examples=80)
@given(st.integers(1, 300), st.integers(1, 9), st.integers(1, 4), st.integers(0, 2**31))
def test_the_best_tokens_are_those_of_topk(size, count, rows, seed):
    generator = torch.Generator().manual_seed(seed)
    values = torch.rand(rows, size, generator=generator)
    found, tokens = best_tokens(values, count)
    torch.testing.assert_close(found, values.topk(min(count, size)).values, rtol=0, atol=0)
    assert torch.equal(values.gather(1, tokens), found)
    assert all(len(set(row)) == len(row) for row in tokens.tolist())
