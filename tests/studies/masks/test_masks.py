"""A decoder with a wrong mask leaks exactly as far as it was told to, and copying is noticed."""

import pytest
import torch

from transformer import minimal
from transformer.data import toy
from transformer.inference.decoding import beam_search
from transformer.model.transformer import Transformer
from transformer_book.studies.masks.peeking import PeekingTransformer
from transformer_book.studies.masks.study import mask_in_use, predicted
from transformer_book.studies.toy import REVERSE, toy_config
from transformer_book.toy_translator import trained


def make(*future):
    torch.manual_seed(0)
    kind = PeekingTransformer if future else Transformer
    return kind(toy_config(REVERSE, d_model=16, d_ff=16), *future).eval()


def reach(model, source, target):
    """How many positions ahead of an output an input still changes it."""
    usual, furthest = model(source, target), -1
    for place in range(target.size(1)):
        other = target.clone()
        other[:, place] = 7
        changed = (model(source, other) - usual)[0].abs().amax(dim=-1) > 1e-6
        furthest = max(furthest, place - changed.nonzero().min().item())
    return furthest


def test_no_future_is_the_transformer():
    pairs, peeking, usual = REVERSE.batch(8, seed=0), make(0), make()
    ours, theirs = (m(pairs.source, pairs.target_input) for m in (peeking, usual))
    real = pairs.labels != 0
    torch.testing.assert_close(ours[real], theirs[real])
    tokens = [[h.tokens for h in beam_search(m, pairs.source, 3)] for m in (peeking, usual)]
    assert tokens[0] == tokens[1]


@pytest.mark.parametrize("future", [0, 1, 2])
def test_a_mask_shows_as_much_of_the_future_as_it_is_told(future):
    # One layer: two layers of a mask that is off by one reach two positions ahead.
    source, target = torch.tensor([[3, 4, 5, 2]]), torch.tensor([[1, 5, 4, 3]])
    torch.manual_seed(0)
    program = minimal.Transformer(20, 16, 16, heads=2, layers=1).eval()
    with torch.no_grad(), mask_in_use(future):
        assert reach(make(future), source, target) == future
        assert reach(program, source, target) == future
    assert reach(program, source, target) == 0


def test_only_a_copy_predicts_the_german_of_another_sentence():
    model = trained()
    english = [toy.TIRED.english, toy.WIDE.english]
    german = [toy.TIRED.german(perfect=True), toy.WIDE.german(perfect=True)]
    assert predicted(model, english, german) == 1.0
    words = len(toy.encode(german[0]))
    other = predicted(model, english, german[::-1])  # the pronoun and the adjective are wrong
    assert abs(other - (words - 2) / words) < 1e-6
