"""Models of the lookup task differ in score and start only."""

import torch

from transformer_book.studies.additive.study import ADDITIVE, PLAIN, SCALED, Recall, Tables


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
