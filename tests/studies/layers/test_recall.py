"""Models of the lookup task differ in score and start only; the record is whole."""

import numpy as np
import pytest
import torch

from transformer.recipes.record import read_record
from transformer_book.studies.additive.recall import (
    ADDITIVE,
    CONTROL_SIZE,
    CONTROLS,
    ENTRIES,
    MODELS,
    PLAIN,
    RATES,
    RECORD,
    SCALED,
    SCORES,
    SIZES,
    STEPS,
    Recall,
    Tables,
    learn,
    measured,
)

SMALL, LARGE = CONTROLS


def test_a_table_has_each_word_once_and_the_answer_of_the_wanted_entry():
    tables = Tables.draw(2, 5, seed=3)
    assert all(len(set(row)) == ENTRIES for row in tables.words.flatten(0, 1).tolist())
    assert tables.right()[1, 4] == tables.answers[1, 4, tables.wanted[1, 4]]


def test_scores_are_those_of_their_formulas():
    tables = Tables.draw(2, 5, seed=3)
    for kind in (PLAIN, SCALED, ADDITIVE):
        model = Recall(kind, d_k=9, models=2)
        words = model.words[1][tables.words[1, 4]]
        query = words[tables.wanted[1, 4]] @ model.w_q[1]
        key = words @ model.w_k[1]
        if kind.additive:
            expected = torch.tanh(query + key) @ model.v[1]
        else:
            expected = key @ query / (3 if kind.divided else 1)
        torch.testing.assert_close(model.scores(tables)[1, 4], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("one", "other"), [(SCALED, SMALL), (PLAIN, LARGE)])
def test_the_same_start_gives_the_same_scores_under_either_formula(one, other):
    tables = Tables.draw(3, 4, seed=1)
    scores = [Recall(kind, 16, models=3).scores(tables) for kind in (one, other)]
    torch.testing.assert_close(*scores, rtol=1e-4, atol=1e-4)
    spread = scores[0].std(dim=-1).mean().item()
    assert spread == pytest.approx(1 if one is SCALED else 4, rel=0.2)


def test_models_side_by_side_share_nothing():
    tables = Tables.draw(3, 4, seed=1)
    model = Recall(PLAIN, 8, models=3)
    model.loss(model.scores(tables), tables).backward()
    before = model.w_q.grad[1].clone()
    model.zero_grad()
    with torch.no_grad():
        for weight in (model.w_q, model.w_k, model.values, model.output):
            weight[0] += 1
    model.loss(model.scores(tables), tables).backward()
    torch.testing.assert_close(model.w_q.grad[1], before)


def test_the_record_has_every_run_and_begins_as_a_run_does():
    runs = read_record(RECORD)["runs"]
    settings = {(kind.name, d_k, rate) for kind in SCORES for d_k in SIZES for rate in RATES}
    settings |= {(kind.name, CONTROL_SIZE, rate) for kind in CONTROLS for rate in RATES}
    assert settings == {(run["kind"], run["d_k"], run["rate"]) for run in runs}
    shares = measured(runs, ADDITIVE, 4, 0.01)
    assert shares.shape == (MODELS, len(STEPS)) and ((shares >= 0) & (shares <= 1)).all()
    _, found = learn(ADDITIVE, 4, 0.01, steps=(0, 25))
    for name in found[0]:
        again = np.array([each[name] for each in found]).T
        recorded = measured(runs, ADDITIVE, 4, 0.01, name)[:, :2]
        assert np.allclose(again, recorded, rtol=0.05, atol=0.02), name
