"""Readers differ in attention and size only; the record is whole."""

import numpy as np
import pytest

from transformer.recipes.record import read_record
from transformer_book.studies.why_attend.bottleneck import (
    FACTORS,
    LENGTHS,
    READERS,
    RECORD,
    SEEDS,
    STEPS,
    Reader,
    learn,
    shares_of,
)


def test_a_run_is_repeatable_and_learns():
    reader = Reader("attention", True, 16)
    model, shares = learn(reader, seed=3, steps=(3, 60), size=20)
    _, again = learn(reader, seed=3, steps=(3, 60), size=20)
    assert shares == again and np.shape(shares) == (2, len(LENGTHS))
    assert model.config.attention and model.config.d_hidden == 16
    _, other = learn(reader, seed=3, steps=(3, 300), size=20)
    assert sum(other[-1]) > sum(shares[0])


def test_the_record_has_every_run():
    runs = read_record(RECORD)["runs"]
    for reader in READERS:
        for factor in FACTORS:
            shares = shares_of(runs, reader.name, factor)
            assert shares.shape == (len(SEEDS), len(STEPS), len(LENGTHS))
            assert ((shares >= 0) & (shares <= 1)).all()
    sizes = {run["reader"]: run["parameters"] for run in runs}
    for reader in READERS:
        assert sizes[reader.name] == pytest.approx(reader.model(1).num_parameters())
