"""A decoder with a wrong mask leaks exactly as far as it was told to."""

import pytest
import torch

from transformer.inference.decoding import beam_search
from transformer.model.transformer import Transformer
from transformer_book.studies.masks.influence import influence
from transformer_book.studies.masks.peeking import PeekingTransformer
from transformer_book.studies.toy import REVERSE, toy_config

SOURCE = torch.tensor([[3, 4, 5, 2]])
TARGET = torch.tensor([[1, 5, 4, 3]])


def make(*future):
    torch.manual_seed(0)
    kind = PeekingTransformer if future else Transformer
    return kind(toy_config(REVERSE, d_model=16, d_ff=16), *future).eval()


def test_no_future_is_the_transformer():
    pairs, peeking, usual = REVERSE.batch(8, seed=0), make(0), make()
    ours, theirs = (m(pairs.source, pairs.target_input) for m in (peeking, usual))
    real = pairs.labels != 0
    torch.testing.assert_close(ours[real], theirs[real])
    tokens = [[h.tokens for h in beam_search(m, pairs.source, 3)] for m in (peeking, usual)]
    assert tokens[0] == tokens[1]


@pytest.mark.parametrize("future", [0, 1, 4])
def test_influence_shows_how_far_the_mask_reaches(future):
    # One layer: two layers of a mask that is off by one reach two positions ahead.
    to_target, to_source = influence(make(future), SOURCE, TARGET)
    may = torch.ones(4, 4, dtype=torch.bool).tril(future)
    assert (to_target[~may] == 0).all() and (to_target[may] > 1e-6).all()
    assert to_source.shape == (4, 4) and (to_source > 1e-6).all()
