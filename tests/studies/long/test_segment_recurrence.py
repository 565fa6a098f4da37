"""Scores by distance, a memory without gradient, and a task that needs both."""

import pytest
import torch

from transformer.model.positional import sinusoidal_table
from transformer_book.studies.sparse.segment_recurrence import (
    RelativeAttention,
    SegmentModel,
    relative_shift,
)


@pytest.mark.parametrize("queries, keys", [(1, 1), (3, 3), (2, 5), (4, 9)])
def test_the_shift_brings_each_distance_to_its_key(queries, keys):
    distances = torch.arange(keys - 1, -1, -1.0).expand(2, queries, keys)
    shifted = relative_shift(distances)
    for i in range(queries):
        for j in range(keys - queries + i + 1):
            assert (shifted[:, i, j] == keys - queries + i - j).all()


def test_scores_are_the_four_terms_pair_by_pair():
    torch.manual_seed(0)
    layer = RelativeAttention(8, 2)
    for bias in (layer.content_bias, layer.distance_bias):
        torch.nn.init.normal_(bias)
    x, memory = torch.randn(1, 3, 8), torch.randn(1, 4, 8)
    context = torch.cat([memory, x], dim=1)[0]
    q, (k, value) = layer.query(x[0]), layer.key_value(context).chunk(2, dim=-1)
    r = layer.distance(sinusoidal_table(7, 8))
    rows = []
    for i in range(3):
        parts = []
        for head in range(2):
            own = slice(4 * head, 4 * head + 4)
            u, v = layer.content_bias[head, 0], layer.distance_bias[head, 0]
            scores = torch.stack(
                [
                    (q[i, own] + u) @ k[j, own] + (q[i, own] + v) @ r[4 + i - j, own]
                    for j in range(4 + i + 1)
                ]
            )
            parts.append((scores / 4**0.5).softmax(0) @ value[: 4 + i + 1, own])
        rows.append(torch.cat(parts))
    mask = torch.ones(3, 7, dtype=torch.bool).tril(4)
    torch.testing.assert_close(layer(x, memory, mask)[0], layer.out(torch.stack(rows)))


def test_one_long_segment_and_many_short_ones_agree_while_the_memory_holds_all():
    torch.manual_seed(0)
    model = SegmentModel(8, num_layers=2, memory_length=100)
    tokens = torch.randint(8, (3, 12))
    whole, _ = model(tokens)
    memories, parts = None, []
    for part in tokens.split(5, dim=1):
        logits, memories = model(part, memories)
        parts.append(logits)
    torch.testing.assert_close(torch.cat(parts, dim=1), whole)


def test_continuing_positions_go_on_and_restarting_ones_begin_anew():
    torch.manual_seed(0)
    tokens = torch.randint(8, (1, 6))
    for positions, same in (("restarting", True), ("continuing", False), ("relative", True)):
        model = SegmentModel(8, positions=positions)
        assert torch.allclose(model(tokens)[0], model(tokens, start=6)[0], atol=1e-5) == same


def test_the_memory_has_its_length_and_no_gradient():
    model = SegmentModel(8, num_layers=2, memory_length=7)
    memories = None
    for length in (5, 5, 5):
        _, memories = model(torch.randint(8, (2, length)), memories)
        assert not any(memory.requires_grad for memory in memories)
    assert [memory.shape for memory in memories] == [(2, 7, 32)] * 2


def test_a_pattern_hides_distances():
    model = SegmentModel(8, pattern=lambda distance: distance % 3 == 0)
    assert model.mask(2, 3).int().tolist() == [[1, 0, 0, 1, 0], [0, 1, 0, 0, 1]]


def test_no_layer_sees_ahead():
    torch.manual_seed(0)
    model = SegmentModel(8, num_layers=2, memory_length=4)
    tokens = torch.randint(8, (1, 6))
    other = tokens.clone()
    other[0, 4] = (other[0, 4] + 1) % 8
    before, after = model(tokens)[0], model(other)[0]
    torch.testing.assert_close(before[:, :4], after[:, :4])
    assert not torch.allclose(before[:, 4], after[:, 4])
