"""Masks: True = may attend."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer.model.masks import causal_mask, padding_mask


def rows(mask: torch.Tensor) -> list[str]:
    return ["".join(str(int(cell)) for cell in row) for row in mask]


def test_causal_mask_by_hand():
    assert rows(causal_mask(4)) == ["1000", "1100", "1110", "1111"]
    assert causal_mask(4).dtype == torch.bool


def test_padding_mask_by_hand():
    mask = padding_mask(torch.tensor([[5, 7, 9, 0, 0], [5, 0, 0, 0, 0]]))
    assert mask.shape == (2, 1, 1, 5)
    assert rows(mask[:, 0, 0]) == ["11100", "10000"]


def test_padding_mask_of_another_pad_id():
    assert rows(padding_mask(torch.tensor([[0, 4, 3, 3]]), pad_id=3)[:, 0, 0]) == ["1100"]


def test_target_mask_leaves_padding_queries_attending_to_real_keys():
    """Masking them as well would leave rows with nothing to attend to; the loss drops them."""
    target = torch.tensor([[1, 2, 3, 0, 0]])
    mask = causal_mask(5) & padding_mask(target)
    assert mask.shape == (1, 1, 5, 5)
    assert rows(mask[0, 0]) == ["10000", "11000", "11100", "11100", "11100"]


@settings(deadline=None, derandomize=True, max_examples=30)
@given(st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), min_size=1, max_size=3))
def test_masks_say_who_may_attend_to_whom(ids):
    mask = (causal_mask(4) & padding_mask(torch.tensor(ids))).expand(len(ids), 1, 4, 4)
    for sentence, row in enumerate(ids):
        for query in range(4):
            for key in range(4):
                expected = key <= query and row[key] != 0
                assert mask[sentence, 0, query, key].item() is expected


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
def test_masks_are_made_where_they_are_used():
    assert causal_mask(3, "cuda").is_cuda
    assert padding_mask(torch.ones(1, 2, dtype=torch.int64, device="cuda")).is_cuda
