"""The starts differ in factor and size only; the record is whole, and a part comes out again."""

from itertools import product

import numpy as np
import torch

from transformer.recipes.record import read_record
from transformer_book.studies.embeddings.embedding_scale import (
    BLOCK,
    D_MODEL,
    RATES,
    RECORD,
    SEEDS,
    STARTS,
    STEPS,
    TASKS,
    learn,
    losses_of,
)


def test_starts_differ_in_factor_and_size_only():
    models = []
    for start in STARTS:
        torch.manual_seed(0)
        models.append(start.model(TASKS["sort"]))
    usual = models[0]
    assert usual.embedding.scale == D_MODEL**0.5
    for start, model in zip(STARTS, models, strict=True):
        assert model.output_weight is model.embedding.weight
        assert model.embedding.scale == start.factor
        torch.testing.assert_close(model.embedding.weight, usual.embedding.weight * start.size)
        others = zip(model.encoder.parameters(), usual.encoder.parameters(), strict=True)
        assert all(torch.equal(one, other) for one, other in others)


def test_sorting_does_not_depend_on_the_order_of_the_source():
    symbols = np.array([7, 3, 9, 3, 5])
    assert (TASKS["sort"].rule(symbols) == TASKS["sort"].rule(symbols[::-1])).all()


def test_the_record_has_every_run_and_begins_as_it_does_here():
    runs = read_record(RECORD)["runs"]
    for task, start, rate in product(TASKS, STARTS, RATES):
        losses = losses_of(runs, start.name, task, rate)
        assert losses.shape == (len(SEEDS), STEPS // BLOCK) and (losses >= 0).all()
    again = learn(STARTS[0], "sort", seeds=(1,), steps=BLOCK)
    assert np.allclose(again[0, 0], losses_of(runs, "paper", "sort", 1.0)[0, 0], atol=0.02)
