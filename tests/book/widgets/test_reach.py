"""The reach explorer and the pictures of chapter 24 follow the masks."""

import re

import pytest
import torch

from tests.self_contained import self_contained
from transformer.inference.translator import Translator
from transformer_book.pictures import SENTENCE
from transformer_book.pictures.after.sparse import WINDOW, WORDS, four_patterns
from transformer_book.widgets.masks import PATTERNS, ReachExplorer


def explorer():
    return ReachExplorer(WORDS, query=8)


def test_it_is_small_repeatable_and_loads_nothing():
    assert self_contained(explorer, 60_000)["query"] == 8


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("causal", [False, True])
def test_its_hops_are_powers_of_the_mask(pattern, causal):
    shown = explorer()
    mask = shown.mask(pattern, 3, causal)
    found, step = shown.hops(mask, 4), mask.float() + torch.eye(len(mask))
    assert not (causal and mask.triu(1).any())
    for layers in range(1, 5):
        power = torch.linalg.matrix_power(step, layers) > 0
        assert torch.equal(power, (found >= 0) & (found <= layers))


def test_the_patterns():
    shown = explorer()
    rows = {name: shown.mask(name, 5)[6].nonzero().flatten().tolist() for name in PATTERNS}
    assert rows["window"] == [4, 5, 6, 7, 8]
    assert rows["window and stride"] == [1, 4, 5, 6, 7, 8, 11]
    assert rows["window and global token"] == [0, 4, 5, 6, 7, 8]
    assert rows["blocks"] == [5, 6, 7, 8, 9]
    assert rows["all positions"] == [*range(14)]


@pytest.mark.parametrize(
    "wrong", [dict(width=4), dict(width=11), dict(layers=0), dict(query=14), dict(tokens="abc")]
)
def test_settings_out_of_range_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        ReachExplorer(**dict(tokens=WORDS) | wrong)


def test_the_chain_of_the_picture_fits_into_the_window():
    tokenizer = Translator.from_pretrained("tatoeba-en-de").tokenizer
    pieces = [piece.strip("▁") for piece in tokenizer.tokens(tokenizer.encode(SENTENCE))]
    assert (*pieces, "<eos>") == WORDS
    assert (WORDS[8], WORDS[4], WORDS[1]) == ("it", "cross", "animal")
    assert 8 - 1 > WINDOW // 2 >= max(8 - 4, 4 - 1)


def test_the_picture_counts_its_scores():
    svg = four_patterns().drawn[0].svg()
    assert re.findall(r">(\d+) of 256 scores", svg) == ["74", "110", "100", "64"]
