"""Edits of heads are exact, and what is said of heads is counted as by hand."""

import numpy as np
import pytest
import torch

from transformer.data.batching import Batch
from transformer.data.parallel import Split
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer_book.studies.what_heads_learn import ablation
from transformer_book.studies.what_heads_learn.attention_alignment import (
    strongest_links,
    word_weights,
)
from transformer_book.studies.what_heads_learn.looks import Looks
from transformer_book.studies.what_heads_learn.roles import (
    role_patterns,
    role_scores,
    roles_of,
    threshold,
)
from transformer_book.studies.what_heads_learn.word_alignment import (
    AlignedPair,
    WordAligner,
    alignment_error_rate,
)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    config = TransformerConfig(
        30, d_model=12, d_ff=16, num_heads=3, num_layers=2, num_decoder_layers=1, dropout=0.5
    )
    model = Transformer(config).eval()
    for head in ablation.heads_of(config)[::3]:
        for projection in ablation.attention_of(model, head).children():
            torch.nn.init.normal_(projection.bias)
    return model


@pytest.fixture(scope="module")
def batch():
    source = torch.tensor([[5, 6, 7, 8, 2], [9, 4, 2, 0, 0]])
    labels = torch.tensor([[11, 12, 13, 2], [14, 2, 0, 0]])
    inputs = torch.tensor([[1, 11, 12, 13], [1, 14, 0, 0]])
    return Batch(source, inputs, labels, 8, 6)


@pytest.mark.parametrize("head", ["encoder 2.3", "decoder 1.1", "cross 1.2"])
def test_silent_is_zero_columns_of_the_output_matrix(model, batch, head):
    head = ablation.Head.named(head)
    with ablation.edited(model, {head: ablation.silent}):
        found = model(batch.source, batch.target_input)
    columns = slice(4 * head.index, 4 * head.index + 4)
    weight = ablation.attention_of(model, head).output_projection.weight
    kept = weight.detach().clone()
    with torch.no_grad():
        weight[:, columns] = 0.0
        expected = model(batch.source, batch.target_input)
        weight.copy_(kept)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    whole = model(batch.source, batch.target_input)
    assert (found - whole)[batch.labels != 0].abs().max() > 1e-3


def test_shuffled_keeps_the_weights_and_the_visible_places():
    visible = (torch.rand(4, 5, 9) > 0.4) | (torch.arange(9) == 3)
    weights = torch.rand(4, 5, 9).masked_fill(~visible, -torch.inf).softmax(dim=-1)
    found = ablation.shuffled(weights, visible, 1)
    assert found[~visible].abs().max() == 0
    assert torch.equal(found.sort(dim=-1).values, weights.sort(dim=-1).values)
    assert not torch.equal(found, weights)
    assert torch.equal(found, ablation.shuffled(weights, visible, 1))


def test_losses_are_those_of_each_pair(model, batch):
    found = ablation.pair_losses(model, [batch, batch])
    log_p = model(batch.source, batch.target_input).log_softmax(dim=-1)
    by_token = -log_p.gather(-1, batch.labels[..., None])[..., 0]
    expected = [by_token[0].sum().item(), by_token[1, :2].sum().item()]
    np.testing.assert_allclose(found.nll, expected * 2, rtol=1e-5)
    assert found.tokens.tolist() == [4, 2, 4, 2]
    assert found.mean == pytest.approx(sum(expected) / 6)
    edits, memories = (
        {ablation.Head("cross", 0, 2): ablation.silent},
        ablation.encode_all(model, [batch]),
    )
    again = ablation.pair_losses(model, [batch], edits, memories)
    np.testing.assert_allclose(again.nll, ablation.pair_losses(model, [batch], edits).nll)


def test_a_difference_and_its_draws():
    tokens = np.array([1, 3, 4])
    one, other = (
        ablation.PairLosses(np.array(x), tokens) for x in ([3.0, 4.0, 9.0], [2.0, 4.0, 4.0])
    )
    more, draws = one.more_than(other, samples=4000)
    assert more == 6 / 8
    # Pair by pair the differences a token are 1, 0 and 5/4: no drawn set can lie outside of that.
    assert draws.min() == 0 and draws.max() == 1.25
    # The first two pairs belong together: 1 more on 4 tokens, and 5 on 4.
    _, draws = one.more_than(other, groups=[0, 0, 2], samples=4000)
    assert set(draws) == {0.25, 0.75, 1.25}
    assert np.mean(draws == 0.75) == pytest.approx(0.5, abs=0.05)


def test_excess_is_taken_at_the_same_distance():
    def looks(weights, linked):
        return Looks(weights[:, None, None], linked, distance, np.arange(7))

    # Weight 0.8 from distance 1 and 0.2 from distance 2: pronouns attend more to the name on
    # average, but not more than other words at the same distance.
    distance = np.array([1, 1, 1, 2, 2, 2, 3])
    linked = np.array([True, True, False, True, False, False, True])
    weights = np.where(distance == 1, 0.8, 0.2)
    assert looks(weights, linked).excess() == pytest.approx(np.zeros((1, 1)), abs=1e-12)
    more = looks(weights + 0.1 * linked, linked)
    assert more.excess() == pytest.approx(0.1)
    assert np.nanmax(np.abs(more.excess_draws(30) - 0.1)) < 1e-9


def by_row(found, row):
    return {role: [tuple(p) for p in x[row].nonzero().tolist()] for role, x in found.items()}


MARKS = [9]
SOURCE = torch.tensor([[5, 6, 5, 9, 2], [7, 9, 2, 0, 0]])


def test_patterns_of_the_encoder(model):
    found = role_patterns("encoder", SOURCE, SOURCE, model, MARKS)[1]
    assert by_row(found, 1) == {
        "itself": [(0, 0), (1, 1), (2, 2)],
        "previous": [(1, 0), (2, 1)],
        "next": [(0, 1), (1, 2)],
        "same word": [],
        "mark": [(0, 1), (1, 1), (2, 1)],
        "end": [(0, 2), (1, 2), (2, 2)],
    }
    assert by_row(found, 0)["same word"] == [(0, 2), (2, 0)]


def test_shares_of_a_role_are_means_over_its_queries(model, batch):
    shares, even = role_scores(model, [batch], MARKS)
    maps = model.attention_weights(batch.source, batch.target_input).encoder
    # Of "previous", queries 1 to 4 of the first sentence and 1 to 2 of the second have a key.
    first, second = (w.diagonal(-1, dim1=-2, dim2=-1) for w in maps[1][:, 2].unbind())
    expected = (first.sum() + second[:2].sum()) / 6
    assert shares["encoder 2.3"]["previous"] == pytest.approx(expected.item(), abs=1e-6)
    assert even["encoder"]["previous"] == pytest.approx((4 / 5 + 2 / 3) / 6)
    assert len(shares) == 12 and "same place" in shares["cross 1.1"]


def test_a_role_needs_its_share_and_must_beat_chance():
    def scored(a, b):
        return {"encoder 1.1": {"a": a, "b": b}, "decoder 1.1": {"a": 0.95}}

    untrained = [scored(0.1, 0.65), scored(0.2, 0.1)]
    assert threshold(untrained, "encoder") == {"a": 0.2, "b": 0.65}
    for a, b, least, expected in (
        (0.9, 0.6, 0.5, [("a", 0.9)]),
        (0.4, 0.7, 0.5, [("b", 0.7)]),
        (0.4, 0.7, 0.3, [("b", 0.7), ("a", 0.4)]),
    ):
        found = roles_of(scored(a, b), untrained, at_least=least)
        assert found == {"encoder 1.1": expected, "decoder 1.1": []}


def test_three_steps_as_in_the_textbook():
    pairs, none = [("a b", "x y"), ("a", "x"), ("b c", "y y z")], 0.2
    table: dict = {}
    for _ in range(3):
        counts: dict = {}
        for source, target in pairs:
            words = ["", *source.split()]
            prior = [none] + [(1 - none) / (len(words) - 1)] * (len(words) - 1)
            for t in target.split():
                shares = [p * table.get((s, t), 1.0) for s, p in zip(words, prior, strict=True)]
                for s, share in zip(words, shares, strict=True):
                    counts[s, t] = counts.get((s, t), 0.0) + share / sum(shares)
        totals = {s: sum(n for (w, _), n in counts.items() if w == s) for s, _ in counts}
        table = {(s, t): n / totals[s] for (s, t), n in counts.items()}
    aligner = WordAligner(Split(*map(list, zip(*pairs, strict=True))), 3, sharpness=0, none=none)
    shares = [none * table["", "y"], 0.4 * table["a", "y"], 0.4 * table["b", "y"]]
    found = aligner.probabilities(["a", "b"], ["y"])
    np.testing.assert_allclose(found, [np.array(shares) / sum(shares)])


def test_error_rate():
    right = [AlignedPair("", "", frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (1, 2)}))]
    for links, expected in (
        ({(0, 0), (1, 1)}, 0.0),
        ({(0, 0), (1, 1), (1, 2)}, 0.0),  # a possible link is no error
        ({(0, 0)}, 1 - 2 / 3),  # a missing one is an error
        ({(0, 0), (1, 1), (2, 2)}, 1 - 4 / 5),
        ({(5, 5)}, 1.0),
    ):
        assert alignment_error_rate([frozenset(links)], right) == pytest.approx(expected)


def test_words_get_sums_and_means():
    weights = np.array([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1], [0.0, 0.5, 0.5, 0.0],
                        [1.0, 0.0, 0.0, 0.0]])  # fmt: skip
    # Target tokens 0 and 1 are word 0, token 2 is word 1; source tokens 1 and 2 are word 1.
    for when, expected in (("writes", [[0.25, 0.5], [0, 1]]), ("has read", [[0.2, 0.75], [1, 0]])):
        found = word_weights(weights, [0, 0, 1], [0, 1, 1], when)
        np.testing.assert_allclose(found, expected)
    assert strongest_links(found) == {(1, 0), (0, 1)}
