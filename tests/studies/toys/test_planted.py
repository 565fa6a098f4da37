"""Every test notices the bugs that it should; the record is whole and can be counted again."""

import numpy as np
import pytest
import torch

from transformer.model.transformer import Transformer
from transformer_book.studies.assembly.memorising import BUGS, NO_BUG
from transformer_book.studies.assembly.planted import (
    CONFIG,
    SEEDS,
    STEPS,
    TESTS,
    examine,
    logits_by_torch,
    noticed,
    parity_gap,
    recorded,
)
from transformer_book.studies.toy import REVERSE

BY_NAME = {bug.name: bug for bug in (NO_BUG, *BUGS)}


def test_pytorch_computes_the_same_with_padding():
    torch.manual_seed(0)
    model, batch = Transformer(CONFIG).eval(), REVERSE.batch(4, seed=2)
    assert (batch.source == 0).any()
    real = batch.labels != 0
    theirs = logits_by_torch(model, batch.source, batch.target_input)
    torch.testing.assert_close(theirs[real], model(batch.source, batch.target_input)[real])
    assert parity_gap(model, batch) < 1e-4


def test_limits_are_those_that_the_chapter_names():
    fine = np.array([0.05, 1.0, 0.0, 0.0, 3.0, 0.0, 0.0])
    broken = np.array([0.2, 0.5, 0.1, 0.1, 0.001, 0.1, 0.1])
    assert not noticed(fine).any() and noticed(broken).all()


@pytest.mark.parametrize("name", ["nothing wrong", "scores not divided", "decodes at position 0"])
def test_a_run_of_the_record_can_be_repeated(name):
    place = list(BY_NAME).index(name)
    again = noticed(np.array(examine(BY_NAME[name], SEEDS[0], STEPS[0])))
    assert again.tolist() == noticed(recorded(STEPS[0]))[place, 0].tolist()


def test_the_record_has_every_run():
    for steps in STEPS:
        assert recorded(steps).shape == (1 + len(BUGS), len(SEEDS), len(TESTS))
    assert not noticed(recorded(STEPS[-1])[0]).any()  # no false alarm
