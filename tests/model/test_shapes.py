"""The annotations are checked at run time: a wrong shape or type is an error at once."""

import pytest
import torch

from tests.model.small import make_ids, make_model
from transformer.model.attention import AdditiveAttention, MultiHeadAttention
from transformer.model.attention import scaled_dot_product_attention as attend
from transformer.model.masks import padding_mask

X = torch.zeros(2, 3, 4)

WRONG = {
    "key of another size than query": lambda: attend(X, torch.zeros(2, 3, 5), X),
    "more values than keys": lambda: attend(X, X, torch.zeros(2, 4, 4)),
    "another batch": lambda: attend(X, torch.zeros(3, 3, 4), torch.zeros(3, 3, 4)),
    "a mask of numbers": lambda: attend(X, X, X, torch.ones(3, 3)),
    "additive": lambda: AdditiveAttention(4, 4, 5)(X, X, torch.zeros(2, 4, 4)),
    "memory of another batch": lambda: MultiHeadAttention(4, 2)(X, torch.zeros(3, 3, 4)),
    "ids that are no integers": lambda: padding_mask(torch.zeros(2, 3)),
    "ids without a batch": lambda: padding_mask(torch.zeros(3, dtype=torch.int64)),
    "batches of different size": lambda: make_model()(make_ids(3, 3), make_ids(3)),
    "numbers for ids": lambda: make_model()(make_ids(3).double(), make_ids(3)),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_shapes_and_types(what):
    with pytest.raises(TypeError, match="Type-check error"):
        WRONG[what]()
