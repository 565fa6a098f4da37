"""Rank correlation, effects of removal, and gradients."""

import numpy as np
import pytest
import torch

from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer_book.studies.what_heads_learn.explanation import (
    gradient_norms,
    mean_agreement,
    removal_effects,
)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(1)
    config = TransformerConfig(20, d_model=8, d_ff=8, num_heads=2, num_layers=1, dropout=0.3)
    return Transformer(config).eval()


SOURCE, TARGET = torch.tensor([[5, 6, 7, 2]]), torch.tensor([[1, 8, 9]])


def test_removal_is_what_a_hole_in_the_source_does(model):
    holed = SOURCE.clone()
    holed[0, 1] = 0
    memory = model.encode(SOURCE)
    whole = model.decode(TARGET, memory, SOURCE).softmax(dim=-1)[0]
    without = {
        "token": model(holed, TARGET).softmax(dim=-1)[0],
        "vector": model.decode(TARGET, memory, holed).softmax(dim=-1)[0],
    }
    found = {what: removal_effects(model, SOURCE, TARGET, what) for what in without}
    for what, changed in without.items():
        assert found[what].shape == (3, 4)
        torch.testing.assert_close(found[what][:, 1], (changed - whole).abs().sum(-1) / 2)
    assert (found["token"] - found["vector"]).abs().max() > 1e-4


def test_gradients_are_those_of_each_prediction(model):
    labels = torch.tensor([[8, 9, 2]])
    found = gradient_norms(model, SOURCE, TARGET, labels)
    # By finite differences along the gradient's own direction, for one prediction and one token.
    embedded = model.embedding(SOURCE).detach().requires_grad_()

    def log_p(x):
        x = model.positions(x)
        for layer in model.encoder:
            x = layer(x)
        logits = model.decode(TARGET, model.encoder_norm(x), SOURCE)
        return logits.log_softmax(dim=-1)[0, 1, 9]

    (gradient,) = torch.autograd.grad(log_p(embedded), embedded)
    torch.testing.assert_close(found[1], gradient[0].norm(dim=-1))
    assert found.shape == (3, 4)
    assert not model.embedding._forward_hooks


def test_agreement_is_a_mean_over_predictions():
    one = np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    other = np.array([[3.0, 5.0, 9.0], [3.0, 2.0, 1.0]])
    np.testing.assert_allclose(mean_agreement([one, one], [other, one]), [0.0, 1.0], atol=1e-12)
