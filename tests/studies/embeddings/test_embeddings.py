"""The starts differ in factor and size only."""

import torch

from transformer_book.studies.embeddings.study import D_MODEL, STARTS, TASKS


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
