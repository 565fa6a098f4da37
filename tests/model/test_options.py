"""What the options that came after the paper compute, and what they leave alone."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from transformer.model.attention import MultiHeadAttention
from transformer.model.config import TransformerConfig
from transformer.model.layers import PositionwiseFeedForward, make_norm
from transformer.model.positional import RotaryPositions
from transformer.model.transformer import Transformer

LATER = dict(norm="pre", norm_kind="rms", activation="swiglu", positions="rotary", num_kv_heads=2)

# ---------------------------------------------------------------- rotary positions


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 900), st.integers(0, 900), st.integers(0, 1500), st.integers(1, 6))
def test_the_product_of_turned_vectors_knows_the_distance_alone(i, j, shift, pairs):
    rotary = RotaryPositions(2 * pairs).double()
    generator = torch.Generator().manual_seed(i + j)
    query, key = torch.randn(2, 1, 2 * pairs, generator=generator, dtype=torch.float64)
    here = (rotary(query, i) * rotary(key, j)).sum()
    there = (rotary(query, i + shift) * rotary(key, j + shift)).sum()
    torch.testing.assert_close(here, there, atol=1e-3, rtol=0)  # the table holds float32 sines
    torch.testing.assert_close(rotary(query, i).norm(), query.norm(), atol=1e-5, rtol=0)


def test_a_turned_vector_is_the_complex_product():
    rotary, x = RotaryPositions(6), torch.randn(2, 5, 6)
    frequencies = 10_000.0 ** (-torch.arange(0, 6, 2) / 6)
    angles = torch.arange(3, 8)[:, None] * frequencies
    turned = torch.view_as_complex(x.unflatten(-1, (3, 2))) * torch.polar(
        torch.ones_like(angles), angles
    )
    torch.testing.assert_close(rotary(x, start=3), torch.view_as_real(turned).flatten(-2))


def test_rotary_positions_go_beyond_what_was_prepared():
    x = torch.randn(1, 4, 2, 8)
    torch.testing.assert_close(RotaryPositions(8, 3)(x, 70), RotaryPositions(8, 200)(x, 70))


def test_an_odd_size_cannot_be_turned():
    with pytest.raises(ValueError, match="size must be even.*5"):
        RotaryPositions(5)
    with pytest.raises(ValueError, match="d_k must be even.*3"):
        TransformerConfig(10, d_model=12, num_heads=4, positions="rotary")


@torch.no_grad()
def test_rotary_self_attention_sees_distance_and_cross_attention_no_position(make_model, make_ids):
    model, ids = make_model(positions="rotary"), make_ids(6)
    x = model.embedding(ids)
    attention = model.encoder[0].self_attention
    whole = attention.project_self(x, start=0)
    later = attention.project_self(x, start=40)
    scores = [query @ key.transpose(-2, -1) for query, key, _ in (whole, later)]
    torch.testing.assert_close(*scores, atol=1e-4, rtol=0)
    assert not torch.allclose(whole[0], later[0])
    assert model.decoder[0].cross_attention.rotary is None
    assert all(layer.self_attention.rotary is model.rotary for layer in model.decoder)


@torch.no_grad()
def test_rotary_positions_tell_order_and_none_does_not(make_model, make_ids):
    source, target = make_ids(5), make_ids(4, seed=1, bos=True)
    mixed = source.flip(1)
    told = make_model(positions="rotary")
    assert not torch.allclose(told(source, target), told(mixed, target))
    blind = make_model(positions="none")
    torch.testing.assert_close(blind(source, target), blind(mixed, target))


# ---------------------------------------------------------------- grouped-query attention


@torch.no_grad()
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("cross", [False, True])
def test_shared_heads_are_equal_heads_written_once(groups, cross):
    torch.manual_seed(0)
    few = MultiHeadAttention(16, 4, d_k=3, d_v=5, num_kv_heads=groups).double()
    full = MultiHeadAttention(16, 4, d_k=3, d_v=5).double()
    nn.init.normal_(few.in_projection.bias)
    for name in ("weight", "bias"):
        query, key, value = getattr(few.in_projection, name).split(few.sizes)
        again = [
            part.unflatten(0, (groups, -1)).repeat_interleave(4 // groups, 0).flatten(0, 1)
            for part in (key, value)
        ]
        getattr(full.in_projection, name).copy_(torch.cat([query, *again]))
    full.out_projection.load_state_dict(few.out_projection.state_dict())
    x, memory = torch.randn(2, 2, 6, 16, dtype=torch.float64)
    mask = torch.ones(6, 6, dtype=torch.bool).tril()
    inputs = (x, memory if cross else None, mask)
    torch.testing.assert_close(few(*inputs), full(*inputs))


def test_as_many_key_heads_as_query_heads_is_the_paper(make_model):
    plain, same = make_model(), make_model(num_kv_heads=4)
    assert all(
        torch.equal(a, b) for a, b in zip(plain.parameters(), same.parameters(), strict=True)
    )


def test_the_cache_shrinks_with_the_key_heads(make_model, make_ids):
    sizes = [
        make_model(num_kv_heads=heads).start_decoding(make_ids(5), 7).layers[0].key.numel()
        for heads in (None, 2, 1)
    ]
    assert sizes[0] == 2 * sizes[1] == 4 * sizes[2]


def test_groups_must_be_equal():
    with pytest.raises(ValueError, match="num_heads must be divisible by num_kv_heads.*4 and 3"):
        MultiHeadAttention(16, 4, num_kv_heads=3)
    with pytest.raises(ValueError, match="num_heads must be divisible by num_kv_heads.*8 and 3"):
        TransformerConfig(10, num_kv_heads=3)


# ---------------------------------------------------------------- norm, gate, first input


def test_the_rms_norm_divides_by_the_size_and_does_not_centre():
    norm, x = make_norm("rms", 8, eps=1e-6), torch.randn(3, 8)
    torch.testing.assert_close(norm(x), x / (x.square().mean(-1, keepdim=True) + 1e-6).sqrt())
    assert norm(x + 3).mean() > 0.5  # the layer norm would give 0
    assert make_norm("layer", 8)(x + 3).mean().abs() < 1e-6


def test_every_norm_of_a_model_is_of_the_kind_that_was_asked_for(make_model):
    kinds = {type(module) for module in make_model(norm_kind="rms", norm="pre").modules()}
    assert nn.RMSNorm in kinds and nn.LayerNorm not in kinds


@pytest.mark.parametrize("name, gate", [("swiglu", F.silu), ("geglu", F.gelu)])
def test_a_gate_multiplies_the_hidden_layer(name, gate):
    network, x = PositionwiseFeedForward(4, 7, activation=name), torch.randn(1, 3, 4)
    expected = network.output(gate(network.gate(x)) * network.hidden(x))
    torch.testing.assert_close(network(x), expected)
    assert sum(p.numel() for p in network.parameters()) == 2 * (4 * 7 + 7) + (7 * 4 + 4)


@torch.no_grad()
def test_with_zeros_the_decoder_starts_from_nothing_learned(make_model, make_ids):
    source, target = make_ids(5), make_ids(4, seed=1, bos=True)
    for first_input, depends in (("token", True), ("zeros", False)):
        model = make_model(first_input=first_input, sharing="none", positions="none")
        before = model(source, target)
        model.target_embedding.weight[1] += 1.0
        assert torch.allclose(before, model(source, target)) != depends


# ---------------------------------------------------------------- all of it together


def test_the_later_model_learns_saves_and_loads(tmp_path, make_config):
    torch.manual_seed(0)
    model = Transformer(make_config(**LATER, dropout=0.0))
    source = torch.randint(3, 19, (8, 6))
    target = torch.cat([torch.ones(8, 1, dtype=torch.int64), source], 1)
    optimiser = torch.optim.Adam(model.parameters(), 3e-3)
    for _ in range(60):
        loss = F.cross_entropy(model(source, target[:, :-1]).flatten(0, 1), source.flatten())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss < 0.5
    model.save_pretrained(tmp_path)
    again = Transformer.from_pretrained(tmp_path).eval()
    assert again.config == model.config
    torch.testing.assert_close(again(source, target), model.eval()(source, target))
