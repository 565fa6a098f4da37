"""Edits of heads are exact and temporary, and their cost is measured correctly."""

import numpy as np
import pytest
import torch

from transformer.data.batching import Batch
from transformer.inference.decoding import greedy_search
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer_book.studies.what_heads_learn.ablation import (
    Head,
    PairLosses,
    attention_of,
    edited,
    encode_all,
    even,
    heads_of,
    pair_losses,
    shuffled,
    silent,
)


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    config = TransformerConfig(
        30, d_model=12, d_ff=16, num_heads=3, num_layers=2, num_decoder_layers=1, dropout=0.5
    )
    model = Transformer(config).eval()
    for attention in [attention_of(model, head) for head in heads_of(config)[::3]]:
        for projection in attention.children():
            torch.nn.init.normal_(projection.bias)
    return model


@pytest.fixture(scope="module")
def batch():
    source = torch.tensor([[5, 6, 7, 8, 2], [9, 4, 2, 0, 0]])
    labels = torch.tensor([[11, 12, 13, 2], [14, 2, 0, 0]])
    inputs = torch.tensor([[1, 11, 12, 13], [1, 14, 0, 0]])
    return Batch(source, inputs, labels, 8, 6)


def test_heads_and_their_names(model):
    heads = heads_of(model.config)
    assert len(heads) == 2 * 3 + 3 + 3 == len(set(heads))
    assert [str(head) for head in heads[:4]] == [
        "encoder 1.1", "encoder 1.2", "encoder 1.3", "encoder 2.1",
    ]  # fmt: skip
    assert all(Head.named(str(head)) == head for head in heads)
    assert attention_of(model, Head("cross", 0, 1)) is model.decoder[0].cross_attention
    assert attention_of(model, Head("decoder", 0, 1)) is model.decoder[0].self_attention


@pytest.mark.parametrize("head", ["encoder 2.3", "decoder 1.1", "cross 1.2"])
def test_silent_is_zero_columns_of_the_output_matrix(model, batch, head):
    head = Head.named(head)
    with edited(model, {head: silent}):
        found = model(batch.source, batch.target_input)
        translation = greedy_search(model, batch.source, max_length=6)
    columns = slice(4 * head.index, 4 * head.index + 4)
    weight = attention_of(model, head).output_projection.weight
    kept = weight.detach().clone()
    with torch.no_grad():
        weight[:, columns] = 0.0
        expected = model(batch.source, batch.target_input)
        for one, other in zip(
            translation, greedy_search(model, batch.source, max_length=6), strict=True
        ):
            assert one.tokens == other.tokens
            assert one.log_probability == pytest.approx(other.log_probability, abs=1e-5)
        weight.copy_(kept)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    whole = model(batch.source, batch.target_input)
    assert (found - whole)[batch.labels != 0].abs().max() > 1e-3


def test_the_model_is_restored_even_after_an_error(model):
    model.train()
    with pytest.raises(KeyError), edited(model, {Head("cross", 0, 0): silent}):
        assert not model.training
        raise KeyError
    assert model.training and "attend" not in vars(model.decoder[0].cross_attention)
    model.eval()


def test_other_weights_are_what_the_maps_show(model, batch):
    heads = [Head("encoder", 0, 1), Head("encoder", 0, 2)]
    before = model.attention_weights(batch.source, batch.target_input).encoder[0]
    with edited(model, {heads[0]: even, heads[1]: silent}):
        after = model.attention_weights(batch.source, batch.target_input).encoder[0]
    torch.testing.assert_close(after[:, 0], before[:, 0])
    assert after[:, 2].abs().max() == 0
    torch.testing.assert_close(after[0, 1], torch.full((5, 5), 0.2))
    torch.testing.assert_close(after[1, 1, 0], torch.tensor([1, 1, 1, 0, 0]) / 3)


def test_shuffled_keeps_the_weights_and_the_visible_places():
    visible = (torch.rand(4, 5, 9) > 0.4) | (torch.arange(9) == 3)
    weights = torch.rand(4, 5, 9).masked_fill(~visible, -torch.inf).softmax(dim=-1)
    found = shuffled(weights, visible, 1)
    assert found[~visible].abs().max() == 0
    assert torch.equal(found.sort(dim=-1).values, weights.sort(dim=-1).values)
    assert not torch.equal(found, weights)
    assert torch.equal(found, shuffled(weights, visible, 1))
    spread = even(weights, visible)
    assert spread[~visible].abs().max() == 0
    torch.testing.assert_close(
        spread[visible], (1 / visible.sum(-1, True)).expand(4, 5, 9)[visible]
    )


def test_losses_are_those_of_each_pair(model, batch):
    found = pair_losses(model, [batch, batch])
    log_p = model(batch.source, batch.target_input).log_softmax(dim=-1)
    by_token = -log_p.gather(-1, batch.labels[..., None])[..., 0]
    expected = [by_token[0].sum().item(), by_token[1, :2].sum().item()]
    np.testing.assert_allclose(found.nll, expected * 2, rtol=1e-5)
    assert found.tokens.tolist() == [4, 2, 4, 2]
    assert found.mean == pytest.approx(sum(expected) / 6)

    head, memories = Head("cross", 0, 2), encode_all(model, [batch])
    with_memories = pair_losses(model, [batch], {head: silent}, memories)
    np.testing.assert_allclose(with_memories.nll, pair_losses(model, [batch], {head: silent}).nll)
    with pytest.raises(ValueError, match="memories do not hold"):
        pair_losses(model, [batch], {Head("encoder", 0, 0): silent}, memories)


def test_a_difference_and_its_draws():
    tokens = np.array([1, 3, 4])
    one, other = (PairLosses(np.array(x), tokens) for x in ([3.0, 4.0, 9.0], [2.0, 4.0, 4.0]))
    more, draws = one.more_than(other, samples=4000)
    assert more == 6 / 8
    # Pair by pair the differences a token are 1, 0 and 5/4: no drawn set can lie outside of that.
    assert draws.min() == 0 and draws.max() == 1.25
    assert draws.mean() == pytest.approx(0.75, abs=0.05)
    # The first two pairs belong together: 1 more on 4 tokens, and 5 on 4.
    _, draws = one.more_than(other, groups=[0, 0, 2], samples=4000)
    assert set(draws) == {0.25, 0.75, 1.25}
    assert np.mean(draws == 0.75) == pytest.approx(0.5, abs=0.05)
    with pytest.raises(ValueError, match="same pairs"):
        one.more_than(PairLosses(other.nll, tokens + 1))
