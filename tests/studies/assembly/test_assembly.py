"""Planted bugs are found by the property that they break, and by no other."""

import pytest
import torch

from transformer.model.transformer import Transformer
from transformer_book.studies.assembly.study import (
    BUGS,
    CONFIG,
    NO_BUG,
    logits_by_torch,
    twin_gap,
)
from transformer_book.studies.properties import cache_gap, leak_gap, order_gap, padding_gap
from transformer_book.studies.toy import REVERSE, toy_config

SMALL = toy_config(REVERSE, vocab_size=REVERSE.vocab_size + 1, d_model=32, d_ff=32)


# The properties that each bug breaks in an untrained model.
BROKEN = {
    "source cut off": {"order"},
    "target not shifted": {"leak"},
    "no causal mask": {"leak", "cache"},
    "decodes at position 0": {"cache"},
    "no positions": {"order"},
    "wrong id for padding": {"padding"},
}


@pytest.mark.parametrize("bug", (NO_BUG, *BUGS), ids=lambda bug: bug.name)
def test_each_bug_breaks_its_property_and_no_other(bug):
    torch.manual_seed(0)
    model, batch = bug.make(SMALL).eval(), REVERSE.batch(4, seed=3)
    gaps = dict(
        leak=leak_gap(model, batch, bug.shift) > 1e-3,
        padding=padding_gap(model, batch) > 1e-3,
        order=order_gap(model, batch) < 1e-3,
        cache=cache_gap(model, batch) > 1e-3,
    )
    assert {name for name, broken in gaps.items() if broken} == BROKEN.get(bug.name, set())


def test_pytorch_computes_the_same_with_padding():
    torch.manual_seed(0)
    model, batch = Transformer(CONFIG).eval(), REVERSE.batch(4, seed=2)
    assert (batch.source == 0).any()
    real = batch.labels != 0
    theirs = logits_by_torch(model, batch.source, batch.target_input)
    torch.testing.assert_close(theirs[real], model(batch.source, batch.target_input)[real])
    assert twin_gap(model, batch) < 1e-4
