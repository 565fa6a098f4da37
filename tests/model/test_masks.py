"""Masks: True = may attend."""

import torch

from transformer.model.masks import causal_mask, padding_mask


def rows(mask: torch.Tensor) -> list[str]:
    return ["".join(str(int(cell)) for cell in row) for row in mask]


def test_masks_by_hand():
    assert causal_mask(4).dtype == torch.bool
    assert rows(causal_mask(4)) == ["1000", "1100", "1110", "1111"]
    mask = padding_mask(torch.tensor([[5, 7, 9, 0, 0], [5, 0, 0, 0, 0], [0, 0, 0, 0, 0]]))
    assert mask.shape == (3, 1, 1, 5) and mask.dtype == torch.bool
    assert rows(mask[:, 0, 0]) == ["11100", "10000", "11111"]  # no query is left without a key
    assert rows(padding_mask(torch.tensor([[0, 4, 3, 3]]), pad_id=3)[:, 0, 0]) == ["1100"]
