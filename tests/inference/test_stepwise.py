"""What both searches ask for: the next token's log-probabilities, and the best of them."""

import math
from types import SimpleNamespace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer.inference.stepwise import best_tokens, next_log_probabilities


class Fixed(torch.nn.Module):
    """A model that always answers the same."""

    def __init__(self, logits):
        super().__init__()
        self.config = SimpleNamespace(pad_id=0, bos_id=1, eos_id=2)
        self.logits = torch.tensor(logits)

    def start_decoding(self, source, *, max_length, beam_size=1):
        raise NotImplementedError

    def decode_next(self, tokens, state):
        return self.logits


def test_log_probabilities_are_the_models_own_but_for_what_is_never_produced():
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
    with pytest.raises(ValueError, match="not finite"):
        next_log_probabilities(Fixed(logits), torch.tensor([1, 1]), None)


@settings(deadline=None, derandomize=True, max_examples=80)
@given(st.integers(1, 300), st.integers(1, 9), st.integers(1, 4), st.integers(0, 2**31))
def test_the_best_tokens_are_those_of_topk(size, count, rows, seed):
    generator = torch.Generator().manual_seed(seed)
    values = torch.rand(rows, size, generator=generator)
    found, tokens = best_tokens(values, count)
    torch.testing.assert_close(found, values.topk(min(count, size)).values, rtol=0, atol=0)
    assert torch.equal(values.gather(1, tokens), found)
    assert all(len(set(row)) == len(row) for row in tokens.tolist())


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.lists(st.sampled_from([0.0, 1.0, 2.0, -math.inf]), min_size=1, max_size=60))
def test_of_equals_the_one_best_is_the_first(values):
    found, tokens = best_tokens(torch.tensor([values]), 1)
    assert found.item() == max(values)
    assert tokens.item() == values.index(max(values))


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=1, max_size=60), st.integers(2, 8))
def test_among_equals_no_token_comes_twice_and_none_worse_comes_first(values, count):
    found, tokens = best_tokens(torch.tensor([values]), count)
    assert found[0].tolist() == sorted(values, reverse=True)[:count]
    assert len(set(tokens[0].tolist())) == min(count, len(values))
