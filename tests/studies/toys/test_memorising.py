"""Planted bugs are found by the property that they break, and by no other."""

import dataclasses

import pytest
import torch

from transformer_book.studies.assembly.memorising import BUGS, NO_BUG, memorise
from transformer_book.studies.properties import (
    cache_gap,
    leak_gap,
    order_gap,
    padding_gap,
)
from transformer_book.studies.toy import REVERSE, recited, toy_config

CONFIG = toy_config(REVERSE, vocab_size=REVERSE.vocab_size + 1, d_model=32, d_ff=32)
BATCH = REVERSE.batch(4, seed=3)
# The properties that each bug breaks in an untrained model.
BROKEN = {
    "nothing wrong": set(),
    "source cut off": {"order"},
    "target not shifted": {"leak"},
    "no causal mask": {"leak", "cache"},
    "decodes at position 0": {"cache"},
    "no positions": {"order"},
    "wrong id for padding": {"padding"},
    "scores not divided": set(),
    "embeddings not scaled": set(),
    "a norm too many": set(),
}


def make(bug):
    torch.manual_seed(0)
    return bug.make(CONFIG).eval()


@pytest.mark.parametrize("bug", (NO_BUG, *BUGS), ids=lambda bug: bug.name)
def test_each_bug_breaks_its_property_and_no_other(bug):
    model, right = make(bug), make(NO_BUG)
    gaps = dict(
        leak=leak_gap(model, BATCH, bug.shift) > 1e-3,
        padding=padding_gap(model, BATCH) > 1e-3,
        order=order_gap(model, BATCH) < 1e-3,
        cache=cache_gap(model, BATCH) > 1e-3,
    )
    assert {name for name, broken in gaps.items() if broken} == BROKEN[bug.name]
    same = torch.allclose(*(m(BATCH.source, BATCH.target_input) for m in (model, right)))
    # These are right in the forward pass of training.
    assert same == (bug.name in ("nothing wrong", "target not shifted", "decodes at position 0"))


def test_a_small_batch_is_learned_by_heart():
    torch.manual_seed(0)
    model = NO_BUG.make(CONFIG)
    assert recited(model, BATCH) == 0.0
    losses = memorise(model, BATCH, steps=150)
    assert losses[-1] < 0.05 < 1 < losses[0] and not model.training
    assert recited(model, BATCH) == 1.0
    labels = BATCH.labels.clone()
    labels[0, 0] = 3 + (labels[0, 0] - 2) % 12  # one wrong symbol makes a wrong answer
    assert recited(model, dataclasses.replace(BATCH, labels=labels)) == 0.75
