"""What tests/conftest.py promises to every other test."""

import os

import matplotlib
import pytest
import torch
from jaxtyping import TypeCheckError

from transformer.model.masks import causal_mask, padding_mask


def test_shapes_are_checked_at_run_time():
    with pytest.raises(TypeCheckError):
        padding_mask(torch.zeros(2, 3, 4, dtype=torch.long))
    with pytest.raises(TypeCheckError):
        causal_mask("3")


def test_one_thread_and_no_display():
    assert torch.get_num_threads() == 1 and os.environ["OMP_NUM_THREADS"] == "1"
    assert matplotlib.get_backend().lower() == "agg"
