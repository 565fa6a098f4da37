"""Roles are counted on the right keys, without padding, and against chance."""

import numpy as np
import pytest
import torch

from transformer.data.batching import Batch
from transformer.data.tokenizer import Tokenizer
from transformer.lab.heads.ablation import Head
from transformer.lab.heads.roles import (
    RoleScores,
    mark_ids,
    role_patterns,
    role_scores,
    roles_of,
    threshold,
)
from transformer.model.config import TransformerConfig
from transformer.model.transformer import AttentionMaps, Transformer

MARKS = [9]
SOURCE = torch.tensor([[5, 6, 5, 9, 2], [7, 9, 2, 0, 0]])
INPUT = torch.tensor([[1, 5, 9, 5], [1, 7, 0, 0]])


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return Transformer(TransformerConfig(12, d_model=8, d_ff=8, num_heads=2, num_layers=2)).eval()


def places(pattern):
    return [tuple(place) for place in pattern.nonzero().tolist()]


def test_patterns_of_the_encoder(model):
    visible, found = role_patterns("encoder", SOURCE, SOURCE, model, MARKS)
    assert list(found) == ["itself", "previous", "next", "same word", "mark", "end"]
    assert visible[0].all() and visible[1].sum() == 9
    in_second = {role: [p[1:] for p in places(x) if p[0] == 1] for role, x in found.items()}
    assert in_second["previous"] == [(1, 0), (2, 1)]
    assert in_second["next"] == [(0, 1), (1, 2)]
    assert in_second["itself"] == [(0, 0), (1, 1), (2, 2)]
    assert places(found["same word"]) == [(0, 0, 2), (0, 2, 0)]
    assert in_second["mark"] == [(0, 1), (1, 1), (2, 1)]
    assert in_second["end"] == [(0, 2), (1, 2), (2, 2)]


def test_patterns_of_the_decoder_do_not_look_ahead(model):
    visible, found = role_patterns("decoder", INPUT, INPUT, model, MARKS)
    assert list(found) == ["itself", "previous", "same word", "mark", "start"]
    assert visible.sum() == 10 + 3
    assert places(found["same word"]) == [(0, 3, 1)]
    assert places(found["mark"]) == [(0, 2, 2), (0, 3, 2)]
    assert places(found["start"])[-2:] == [(1, 0, 0), (1, 1, 0)]


def test_patterns_of_cross_attention(model):
    links = [np.zeros((4, 3), bool), np.ones((2, 1), bool)]
    links[0][2, 0] = links[0][0, 2] = True
    visible, found = role_patterns("cross", INPUT, SOURCE, model, MARKS, links)
    assert list(found) == ["same place", "translated", "just read", "mark", "end"]
    assert visible.sum() == 4 * 5 + 2 * 3
    # Row 0 writes the first token, row 1 has just read it.
    assert places(found["translated"]) == [(0, 0, 2), (0, 2, 0), (1, 0, 0), (1, 0, 1)]
    assert places(found["just read"]) == [(0, 1, 2), (0, 3, 0), (1, 1, 0), (1, 1, 1)]
    assert places(found["same place"]) == [
        (0, 0, 0), (0, 1, 1), (0, 2, 3), (0, 3, 4), (1, 0, 0), (1, 1, 2),
    ]  # fmt: skip
    without = role_patterns("cross", INPUT, SOURCE, model, MARKS)[1]
    assert list(without) == ["same place", "mark", "end"]


class Fixed(Transformer):
    """A model with given maps: even ones, but for one head that looks back."""

    def attention_maps(self, source, target):
        sides = dict(encoder=(source, source), decoder=(target, target), cross=(target, source))
        maps = AttentionMaps()
        for kind, (queries, keys) in sides.items():
            seen = (keys != 0)[:, None, None, :].expand(-1, 2, queries.size(1), -1).float()
            if kind == "decoder":
                seen = seen.tril()
            layers = [seen / seen.sum(dim=-1, keepdim=True).clamp(min=1) for _ in range(2)]
            if kind == "encoder":
                layers[1] = layers[1].clone()
                layers[1][:, 0] = torch.eye(keys.size(1)).roll(1, dims=0)
            setattr(maps, kind, layers)
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
    for kind in scores.values():  # an even head gets what even attention gets, everywhere
        np.testing.assert_allclose(kind.weight[:, 0, 1], kind.even, rtol=1e-6)
    assert decoder.even[0] == pytest.approx((1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 + 1 / 2) / 6)
    with pytest.raises(ValueError, match="role must be one of"):
        encoder.of("start")


def scored(weight):
    one = np.array(weight, float).reshape(2, 1, 2)  # roles, layers, heads
    return {"encoder": RoleScores(("a", "b"), one, np.zeros(2), np.ones(2, int))}


def test_a_role_needs_its_share_and_must_beat_chance():
    trained = scored([0.9, 0.4, 0.6, 0.7])
    untrained = [scored([0.1, 0.1, 0.65, 0.1]), scored([0.2, 0.1, 0.1, 0.1])]
    assert threshold(untrained, "encoder") == {"a": 0.2, "b": 0.65}
    first, second = Head("encoder", 0, 0), Head("encoder", 0, 1)
    assert roles_of(trained, untrained) == {first: [("a", 0.9)], second: [("b", 0.7)]}
    assert roles_of(trained, untrained, at_least=0.3)[second] == [("b", 0.7), ("a", 0.4)]


def test_marks_are_punctuation_alone():
    tokenizer = Tokenizer.train(["well, well. no! a-b <eos> 3.5"] * 3, 265)
    labels = tokenizer.tokens(mark_ids(tokenizer))
    assert {",", ".", "!", "-"} <= set(labels)
    assert not {"a", "3", "▁", "<eos>", "<0xC3>"} & set(labels)
