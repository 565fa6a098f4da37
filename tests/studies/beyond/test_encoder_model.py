"""The encoder alone: the model's own layers, masked padding, and a loop over examples."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from transformer.model.config import TransformerConfig
from transformer.model.embedding import TokenEmbedding
from transformer.model.transformer import Transformer
from transformer_book.studies.other_tasks.encoder_model import (
    EncoderModel,
    VectorEmbedding,
    answers,
    pad_rows,
    train_by_rows,
)

CONFIG = TransformerConfig(vocab_size=9, d_model=8, d_ff=16, num_heads=2, num_layers=2, dropout=0.0)


def text_model(**options):
    torch.manual_seed(0)
    return EncoderModel(CONFIG, TokenEmbedding(9, 8), 3, **options).eval()


def test_it_computes_what_the_model_s_encoder_computes():
    torch.manual_seed(1)
    whole = Transformer(CONFIG).eval()
    model = text_model(each=True)
    model.inputs, model.layers = whole.embedding, whole.encoder
    ids = torch.tensor([[3, 4, 5, 0], [6, 7, 8, 3]])
    torch.testing.assert_close(model(ids), model.answer(whole.encode(ids)))


def test_padding_changes_nothing():
    model, ids = text_model(), torch.tensor([[3, 4, 5]])
    torch.testing.assert_close(model(F.pad(ids, (0, 4))), model(ids))
    assert not torch.allclose(model(torch.tensor([[4, 3, 5]])), model(ids), atol=1e-3)
    torch.testing.assert_close(model(torch.zeros(1, 3, dtype=torch.long))[0], model.answer.bias)
    torch.testing.assert_close(answers(model, ids.expand(7, 3), 3), model(ids).expand(7, 3))
    assert pad_rows([[1], [2, 3]], pad_id=7).tolist() == [[1, 7], [2, 3]]


def test_zeros_in_feature_vectors_are_no_padding():
    model = EncoderModel(CONFIG, VectorEmbedding(2, 8), 3).eval()
    x = torch.randn(2, 5, 2)
    x[:, 3:] = 0.0
    assert not torch.allclose(model(x), model(x[:, :3]), atol=1e-3)


def test_a_vector_embedding_of_one_hot_vectors_is_a_token_embedding():
    tokens, vectors = TokenEmbedding(9, 8), VectorEmbedding(9, 8)
    with torch.no_grad():
        vectors.weight.copy_(tokens.weight)
    ids = torch.tensor([[1, 5, 8]])
    torch.testing.assert_close(vectors(F.one_hot(ids, 9).float()), tokens(ids))
    torch.manual_seed(0)
    assert VectorEmbedding(200, 400).weight.std().item() == pytest.approx(400**-0.5, rel=0.05)


def order(seed):
    model, seen = nn.Linear(1, 1), []

    def loss(rows):
        seen.append(rows.tolist())
        return model(rows[:, None].float()).square().mean()

    state = torch.get_rng_state()
    losses = train_by_rows(model, loss, examples=12, steps=6, batch_size=4, seed=seed)
    assert len(losses) == 6 and not model.training
    assert torch.equal(state, torch.get_rng_state())
    return seen


def test_the_loop_uses_each_example_once_before_any_again():
    seen = order(0)
    for first in (0, 3):
        assert sorted(sum(seen[first : first + 3], [])) == list(range(12))
    assert seen[:3] != seen[3:]
    assert seen == order(0) != order(1)


def test_the_learning_rate_climbs_and_falls():
    weight = nn.Parameter(torch.zeros(1))
    places = []

    def loss(rows):
        places.append(weight.item())
        return weight.sum()  # with a constant gradient, Adam moves by the learning rate

    train_by_rows(nn.ParameterList([weight]), loss, 4, 10, batch_size=2, rate=0.1, warmup_steps=5)
    moves = -torch.tensor([*places[1:], weight.item()]) + torch.tensor(places)
    expected = torch.tensor([0.1 * min((s + 1) / 5, 1) * (1 - s / 10) for s in range(10)])
    torch.testing.assert_close(moves, expected, rtol=1e-3, atol=1e-6)
