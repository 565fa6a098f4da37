"""Training side by side is the training of each alone; the record is whole."""

import numpy as np
import pytest

from transformer.recipes.record import read_record
from transformer_book.studies.residuals.warm_up import (
    BATCH,
    NORMS,
    PEAKS,
    RECORD,
    SEEDS,
    STEPS,
    TASK,
    WARMUPS,
    WINDOW,
    learn_together,
    losses_of,
    make,
    schedule,
)
from transformer_book.studies.toy import train_toy


def test_a_schedule_climbs_and_stays():
    rate = schedule(0.004, 4)
    assert [rate(step) for step in (1, 2, 4, 9)] == pytest.approx([0.001, 0.002, 0.004, 0.004])
    assert schedule(0.004, 0)(1) == 0.004


@pytest.mark.parametrize("norm", NORMS)
def test_side_by_side_is_the_same_as_alone(norm):
    rates = schedule(2e-3, 0), schedule(4e-3, 3)
    together = learn_together([make(norm, seed, 1) for seed in (1, 2)], rates, (1, 2), steps=4)
    for seed, rate, found in zip((1, 2), rates, together, strict=True):
        alone = train_toy(make(norm, seed, 1), TASK, 4, BATCH, seed=seed, rate=rate)
        assert np.allclose(found, alone, atol=1e-4)


def test_all_sequences_have_one_length():
    batch = TASK.batch(50, seed=0)
    assert (batch.source != 0).all() and (batch.labels != 0).all()


def test_the_record_has_every_run():
    runs = read_record(RECORD)["runs"]
    assert len(runs) == len(NORMS) * len(PEAKS) * len(WARMUPS) * len(SEEDS)
    for norm in NORMS:
        for peak in PEAKS:
            for warmup in WARMUPS:
                found = losses_of(runs, norm, peak, warmup)
                assert found.shape == (len(SEEDS), STEPS // WINDOW) and (found > 0).all()
    # Ways of a seed start from the same weights: the rate matters, not the draw.
    first = losses_of(runs, "pre", min(PEAKS), 0)[:, 0]
    assert len(set(first)) == len(SEEDS)
