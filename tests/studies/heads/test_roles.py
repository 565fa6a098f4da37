"""Roles are scored on the right keys, without padding, and against chance."""

import numpy as np
import pytest
import torch

from transformer.data.batching import Batch
from transformer.data.tokenizer import Tokenizer
from transformer.model.attention import RecordedAttention
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer_book.studies.what_heads_learn.roles import (
    mark_ids,
    role_patterns,
    role_scores,
    roles_of,
    threshold,
)

MARKS = [9]
SOURCE = torch.tensor([[5, 6, 5, 9, 2], [7, 9, 2, 0, 0]])
INPUT = torch.tensor([[1, 5, 9, 5], [1, 7, 0, 0]])


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return Transformer(TransformerConfig(12, d_model=8, d_ff=8, num_heads=2, num_layers=2)).eval()


def places(pattern):
    return [tuple(place) for place in pattern.nonzero().tolist()]


def by_row(found, row):
    return {role: [p[1:] for p in places(x) if p[0] == row] for role, x in found.items()}


def test_patterns_of_the_encoder(model):
    visible, found = role_patterns("encoder", SOURCE, SOURCE, model, MARKS)
    assert visible[0].all() and visible[1].sum() == 9
    assert by_row(found, 1) == {
        "itself": [(0, 0), (1, 1), (2, 2)],
        "previous": [(1, 0), (2, 1)],
        "next": [(0, 1), (1, 2)],
        "same word": [],
        "mark": [(0, 1), (1, 1), (2, 1)],
        "end": [(0, 2), (1, 2), (2, 2)],
    }
    assert by_row(found, 0)["same word"] == [(0, 2), (2, 0)]


def test_patterns_of_the_decoder_do_not_look_ahead(model):
    visible, found = role_patterns("decoder", INPUT, INPUT, model, MARKS)
    assert visible.sum() == 10 + 3
    first = by_row(found, 0)
    assert first["same word"] == [(3, 1)] and first["mark"] == [(2, 2), (3, 2)]
    assert by_row(found, 1)["start"] == [(0, 0), (1, 0)]


def test_patterns_of_cross_attention(model):
    links = [np.zeros((4, 3), bool), np.ones((2, 1), bool)]
    links[0][2, 0] = links[0][0, 2] = True
    visible, found = role_patterns("cross", INPUT, SOURCE, model, MARKS, links)
    assert visible.sum() == 4 * 5 + 2 * 3
    first = by_row(found, 0)
    # Row 0 writes the first token, row 1 has just read it.
    assert first["translated"] == [(0, 2), (2, 0)] and first["just read"] == [(1, 2), (3, 0)]
    assert first["same place"] == [(0, 0), (1, 1), (2, 3), (3, 4)]
    without = role_patterns("cross", INPUT, SOURCE, model, MARKS)[1]
    assert list(without) == ["same place", "mark", "end"]


class Fixed(Transformer):
    """A model with fixed attention weights: uniform, except for one head that looks back."""

    def attention_weights(self, source, target):
        sides = dict(encoder=(source, source), decoder=(target, target), cross=(target, source))
        maps = RecordedAttention()
        for kind, (queries, keys) in sides.items():
            seen = (keys != 0)[:, None, None, :].expand(-1, 2, queries.size(1), -1).float()
            if kind == "decoder":
                seen = seen.tril()
            layers = [seen / seen.sum(dim=-1, keepdim=True).clamp(min=1) for _ in range(2)]
            if kind == "encoder":
                layers[1] = layers[1].clone()
                layers[1][:, 0] = torch.eye(keys.size(1)).roll(1, dims=0)
            part = "cross_attention" if kind == "cross" else "self_attention"
            stack = "encoder" if kind == "encoder" else "decoder"
            maps |= {f"{stack}.{i}.{part}": layer for i, layer in enumerate(layers)}
        return maps


def test_scores_even_attention_and_counts(model):
    batch = Batch(SOURCE, INPUT, torch.cat([INPUT[:, 1:], INPUT[:, :1]], 1), 8, 6)
    scores = role_scores(Fixed(model.config), [batch, batch], MARKS)
    encoder, decoder = scores["encoder"], scores["decoder"]
    assert encoder.of("previous")[1, 0] == 1.0 and encoder.of("next")[1, 0] == 0.0
    # Four queries with a token before among five keys, two among three, both batches.
    assert encoder.queries[encoder.roles.index("previous")] == 12
    expected = (4 / 5 + 2 / 3) / 6
    assert encoder.of("previous")[0, 0] == pytest.approx(expected)
    for kind in scores.values():  # a uniform head has the scores of uniform attention
        np.testing.assert_allclose(kind.weight[:, 0, 1], kind.even, rtol=1e-6)
    assert decoder.even[0] == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 + 1 / 2) / 6)


def test_a_role_needs_its_share_and_must_beat_chance():
    def scored(*shares):
        return {
            "encoder 1.1": {"a": shares[0], "b": shares[2]},
            "encoder 1.2": {"a": shares[1], "b": shares[3]},
            "decoder 1.1": {"a": 0.95},
        }

    trained = scored(0.9, 0.4, 0.6, 0.7)
    untrained = [scored(0.1, 0.1, 0.65, 0.1), scored(0.2, 0.1, 0.1, 0.1)]
    assert threshold(untrained, "encoder") == {"a": 0.2, "b": 0.65}
    assert roles_of(trained, untrained) == {
        "encoder 1.1": [("a", 0.9)],
        "encoder 1.2": [("b", 0.7)],
        "decoder 1.1": [],
    }
    lower = roles_of(trained, untrained, at_least=0.3)
    assert lower["encoder 1.2"] == [("b", 0.7), ("a", 0.4)]


def test_marks_are_punctuation_alone():
    tokenizer = Tokenizer.train(["well, well. no! a-b <eos> 3.5"] * 3, 265)
    labels = tokenizer.tokens(mark_ids(tokenizer))
    assert {",", ".", "!", "-"} <= set(labels)
    assert not {"a", "3", "▁", "<eos>", "<0xC3>"} & set(labels)
