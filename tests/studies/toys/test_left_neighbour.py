"""The left neighbour is the label, only positions differ between ways, and the record is whole."""

import numpy as np
import pytest
import torch

from transformer.model.positional import LearnedPositionalEmbedding
from transformer.recipes.record import read_record
from transformer_book.studies.positions.left_neighbour import (
    FACTORS,
    LONG,
    PLACES,
    RECORD,
    ROWS,
    SEEDS,
    STEPS,
    WAYS,
    WINDOW,
    Way,
    inside_and_beyond,
    learn,
    right_answers,
    run,
    shares_of,
    windows,
)


def test_the_label_is_the_symbol_to_the_left():
    ids, left = windows(5, torch.Generator().manual_seed(1))
    assert ids.shape == (5, WINDOW) and (left[:, 0] == 0).all()
    assert torch.equal(left[:, 1:], ids[:, :-1])


def test_only_trained_rows_of_a_learned_table_change():
    way = Way("learned", 16)
    before = way.model(4).positions
    model, _ = learn(way, seed=4, steps=(3,))
    assert isinstance(before, LearnedPositionalEmbedding) and len(before.embedding.weight) == ROWS
    changed = (model.positions.embedding.weight != before.embedding.weight).any(dim=1)
    assert changed[:16].all() and not changed[16:].any()


def test_a_window_has_the_positions_it_begins_at():
    model = Way("sinusoidal", 16).model(1)
    ids, _ = windows(2, torch.Generator().manual_seed(0), length=48)
    assert not torch.allclose(run(model, ids[:, :16], 0), run(model, ids[:, :16], 32))
    bare = Way("none", 16).model(1)
    torch.testing.assert_close(run(bare, ids[:, :16], 0), run(bare, ids[:, :16], 32))


def test_a_run_is_repeatable_and_learns():
    way = Way("sinusoidal", 16)
    model, measured = learn(way, seed=3, factor=1.0, steps=(3, 200))
    _, again = learn(way, seed=3, factor=1.0, steps=(3, 200))
    assert measured == again and len(measured) == 2
    assert measured[1]["windows"][0] > 0.5 > measured[0]["windows"][0]
    assert measured[1]["windows"][0] == pytest.approx(right_answers(model).mean())


def test_averages_take_each_place_once():
    share = np.arange(len(PLACES)) / 100
    measured = [dict(windows=share.tolist(), longer=[0, 1, 2, 3, 4, 5, 6, 7])]
    runs = [dict(positions="learned", trained=64, factor=0.5, seed=1, measured=measured)]
    found = inside_and_beyond(runs, Way("learned", 64), 64, 0.5)
    inside = [i for i, place in enumerate(PLACES) if place <= 48]
    assert found["windows inside"] == pytest.approx(share[inside].mean())
    assert found["windows beyond"] == pytest.approx(share[PLACES.index(64) :].mean())
    assert found["sequence inside"] == 1.5 and found["sequence beyond"] == 5.5


def test_the_record_has_every_run():
    runs = read_record(RECORD)["runs"]
    for way in WAYS:
        for factor in FACTORS:
            for test, places in (("windows", len(PLACES)), ("longer", LONG // WINDOW)):
                shares = shares_of(runs, way, test, factor)
                assert shares.shape == (len(SEEDS), len(STEPS), places)
                assert ((shares >= 0) & (shares <= 1)).all()
