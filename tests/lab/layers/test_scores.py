"""Exchanging the score must change the score and nothing else."""

import copy

import pytest
import torch
from torch import nn

from transformer.lab.layers.scores import (
    AdditiveScore,
    DotProductScore,
    ScoredAttention,
    draw_queries_and_keys,
    exchange_score,
)
from transformer.lab.toys.toy import REVERSE, toy_config
from transformer.model.attention import AdditiveAttention, MultiHeadAttention
from transformer.model.transformer import Transformer


def make_model(**changes):
    torch.manual_seed(0)
    return Transformer(toy_config(REVERSE, **changes)).eval()


def test_scaled_dot_product_put_back_changes_nothing():
    model, batch = make_model(), REVERSE.batch(5, seed=1)
    other = copy.deepcopy(model)
    exchange_score(other, lambda d_k: DotProductScore(d_k**-0.5))
    torch.testing.assert_close(
        other(batch.source, batch.target_input), model(batch.source, batch.target_input)
    )


def test_every_attention_is_exchanged_and_no_weight_is_drawn_again():
    model = make_model()
    before = {name: weight.clone() for name, weight in model.named_parameters()}
    exchange_score(model, AdditiveScore)
    attentions = [m for m in model.modules() if isinstance(m, MultiHeadAttention)]
    assert len(attentions) == 3 and all(isinstance(m, ScoredAttention) for m in attentions)
    after = dict(model.named_parameters())
    assert {name for name in after if name not in before} == {
        name for name in after if name.endswith("score.output.weight")
    }
    for name, weight in before.items():
        assert torch.equal(after[name], weight)


def test_additive_score_is_that_of_the_packages_additive_attention():
    torch.manual_seed(0)
    reference = AdditiveAttention(d_query=6, d_key=7, d_hidden=5)
    score = AdditiveScore(5)
    score.output.weight = reference.score.weight
    query, key, value = torch.randn(2, 3, 6), torch.randn(2, 4, 7), torch.randn(2, 4, 8)
    _, weights = reference(query, key, value, need_weights=True)
    projected = reference.query_projection(query), reference.key_projection(key)
    torch.testing.assert_close(score(*projected).softmax(-1), weights)


def test_the_mask_is_applied_and_dropout_only_in_training():
    attention = ScoredAttention(MultiHeadAttention(8, 2, dropout=0.5), AdditiveScore(4))
    x, mask = torch.randn(1, 6, 8), torch.tensor([True] * 5 + [False])
    assert not torch.equal(attention(x), attention(x))
    attention.eval()
    assert torch.equal(attention(x), attention(x))
    other = x.clone()
    other[:, 5] += 1
    torch.testing.assert_close(attention(other, mask=mask)[:, :5], attention(x, mask=mask)[:, :5])


@torch.no_grad()
def test_decoding_with_a_cache_uses_the_new_score():
    model, batch = make_model(), REVERSE.batch(4, seed=2, length=5)
    dot_product = model(batch.source, batch.target_input)
    exchange_score(model, AdditiveScore)
    at_once = model(batch.source, batch.target_input)
    state = model.start_decoding(batch.source, max_length=8)
    for position, tokens in enumerate(batch.target_input.T):
        step = model.decode_next(tokens, state)
        torch.testing.assert_close(step, at_once[:, position], rtol=1e-4, atol=1e-4)
    assert not torch.allclose(at_once, dot_product, atol=1e-2)


@pytest.mark.parametrize("query_std", [0.25, 1.0, 4.0])
@pytest.mark.parametrize("d_k", [16, 256])
def test_components_have_the_variance_that_was_asked_for(d_k, query_std):
    torch.manual_seed(0)
    attention = MultiHeadAttention(64, 1, d_k=d_k, d_v=64)
    value = attention.value_projection.weight.clone()
    draw_queries_and_keys(nn.ModuleList([attention]), query_std)
    x = torch.randn(1, 2000, 64)
    query, (key, _) = attention.project_query(x), attention.project_memory(x)
    assert query.std().item() == pytest.approx(query_std, rel=0.08)
    assert key.std().item() == pytest.approx(1.0, rel=0.08)
    assert torch.equal(attention.value_projection.weight, value)
