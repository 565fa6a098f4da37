"""The encoder alone: the model's own layers, padding that nobody sees, one loop for all."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from transformer.lab.beyond.encoder_model import (
    EncoderModel,
    VectorEmbedding,
    answers,
    pad_rows,
    train_by_rows,
)
from transformer.model.config import TransformerConfig
from transformer.model.embedding import TokenEmbedding
from transformer.model.layers import EncoderLayer
from transformer.model.transformer import Transformer

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
    assert all(type(layer) is EncoderLayer for layer in model.layers)
    torch.testing.assert_close(model(ids), model.answer(whole.encode(ids)))


def test_padding_changes_nothing():
    model, ids = text_model(), torch.tensor([[3, 4, 5]])
    torch.testing.assert_close(model(F.pad(ids, (0, 4))), model(ids))
    assert not torch.allclose(model(torch.tensor([[4, 3, 5]])), model(ids), atol=1e-3)


def test_a_sequence_of_padding_alone_gives_the_bias():
    model = text_model()
    torch.testing.assert_close(model(torch.zeros(1, 3, dtype=torch.long))[0], model.answer.bias)


def test_numbers_are_all_real_even_zeros():
    model = EncoderModel(CONFIG, VectorEmbedding(2, 8), 3).eval()
    x = torch.randn(2, 5, 2)
    x[:, 3:] = 0.0
    assert not torch.allclose(model(x), model(x[:, :3]), atol=1e-3)
    maps = []
    model(x, maps)
    assert [tuple(weights.shape) for weights in maps] == [(2, 2, 5, 5)] * 2


def test_a_vector_embedding_of_one_hot_vectors_is_a_token_embedding():
    tokens, vectors = TokenEmbedding(9, 8), VectorEmbedding(9, 8)
    with torch.no_grad():
        vectors.weight.copy_(tokens.weight)
    ids = torch.tensor([[1, 5, 8]])
    torch.testing.assert_close(vectors(F.one_hot(ids, 9).float()), tokens(ids))
    torch.manual_seed(0)
    assert VectorEmbedding(200, 400).weight.std().item() == pytest.approx(400**-0.5, rel=0.05)


def test_outputs_must_be_positive():
    with pytest.raises(ValueError, match="outputs must be at least 1, got 0"):
        EncoderModel(CONFIG, VectorEmbedding(2, 8), 0)


def test_the_loop_sees_each_example_once_before_any_again():
    model, seen = nn.Linear(1, 1), []

    def loss(rows):
        seen.append(rows.tolist())
        return model(rows[:, None].float()).square().mean()

    losses = train_by_rows(model, loss, examples=12, steps=6, batch_size=4)
    assert len(losses) == 6 and not model.training
    for first in (0, 3):
        assert sorted(sum(seen[first : first + 3], [])) == list(range(12))
    assert seen[:3] != seen[3:]


def test_the_rate_climbs_and_falls():
    weight = nn.Parameter(torch.zeros(1))
    model = nn.ParameterList([weight])
    places = []

    def loss(rows):
        places.append(weight.item())
        return weight.sum()  # a constant gradient: Adam moves by the rate

    train_by_rows(model, loss, examples=4, steps=10, batch_size=2, rate=0.1, warmup_steps=5)
    moves = -torch.tensor([*places[1:], weight.item()]) + torch.tensor(places)
    expected = torch.tensor([0.1 * min((s + 1) / 5, 1) * (1 - s / 10) for s in range(10)])
    torch.testing.assert_close(moves, expected, rtol=1e-3, atol=1e-6)


def test_the_seed_decides_the_order_and_the_global_generator_is_left_alone():
    def order(seed):
        found, model = [], nn.Linear(1, 1)

        def loss(rows):
            found.extend(rows.tolist())
            return model(rows[:, None].float()).mean()

        train_by_rows(model, loss, 8, 2, batch_size=4, seed=seed)
        return found

    state = torch.get_rng_state()
    assert order(1) == order(1) != order(2)
    torch.set_rng_state(state)
    order_before = torch.rand(1)
    torch.set_rng_state(state)
    model = nn.Linear(1, 1)  # draws its weights from the global generator
    after_model = torch.get_rng_state()
    train_by_rows(model, lambda rows: model(rows[:, None].float()).mean(), 8, 2, 4)
    assert torch.equal(after_model, torch.get_rng_state()) and order_before.numel() == 1


@pytest.mark.parametrize(("examples", "steps"), [(3, 2), (8, 0)])
def test_too_few_examples_or_steps(examples, steps):
    with pytest.raises(ValueError, match="examples must be at least batch_size"):
        train_by_rows(nn.Linear(1, 1), lambda rows: None, examples, steps, batch_size=4)


def test_answers_in_parts_are_those_of_the_whole():
    model, x = text_model(), torch.randint(1, 9, (7, 4))
    torch.testing.assert_close(answers(model, x, batch_size=3), model(x))
    assert not answers(model, x).requires_grad


def test_pad_rows():
    assert pad_rows([[1], [2, 3]], pad_id=7).tolist() == [[1, 7], [2, 3]]
