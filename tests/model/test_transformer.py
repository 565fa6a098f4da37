"""The whole model: its pieces in order, maps, checkpointing, dropout, types, errors."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.model.dropout import Dropout
from transformer.model.transformer import AttentionMaps

CUDA = pytest.param(
    "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
)


def test_forward_is_encode_then_decode(make_model, make_ids):
    model = make_model()
    source, target = make_ids(5, 3), make_ids(4, 6, seed=1, bos=True)
    logits = model(source, target)
    assert logits.shape == (2, 6, 19)
    memory = model.encode(source)
    assert memory.shape == (2, 5, 16)
    torch.testing.assert_close(model.decode(target, memory, source), logits)
    states = model.decoder_states(target, memory, source)
    torch.testing.assert_close(states @ model.output_weight.T, logits)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_stacks_end_normalised(make_model, make_ids, norm):
    """Post-norm ends in the last layer's norm; pre-norm needs, and has, one more."""
    model = make_model(norm=norm)
    for parameter in model.parameters():
        if parameter.dim() == 1 and len(parameter) == 16:
            parameter.data.zero_()  # gains and biases of all norms: whatever is last gives zeros
    source, target = make_ids(5), make_ids(4, seed=1, bos=True)
    memory = model.encode(source)
    assert (memory == 0).all()
    assert (model.decoder_states(target, memory, source) == 0).all()


def test_number_of_layers(make_model):
    model = make_model(num_layers=1, num_decoder_layers=None)
    assert (len(model.encoder), len(model.decoder)) == (1, 1)
    model = make_model(num_layers=2, num_decoder_layers=1)
    assert (len(model.encoder), len(model.decoder)) == (2, 1)


@pytest.mark.parametrize(
    "changes",
    [
        dict(positions="sinusoidal-t2t"),
        dict(positions="learned"),
        dict(activation="gelu"),
        dict(activation="silu"),
        dict(norm="pre"),
        dict(attention_scale=1.0),
        dict(layer_norm_eps=0.1),
    ],
)
def test_every_option_changes_the_result(make_model, make_ids, changes):
    source, target = make_ids(5, 3), make_ids(4, 6, seed=1, bos=True)
    state = make_model().state_dict()
    model = make_model(**changes)
    model.load_state_dict(state, strict=False)
    assert not torch.allclose(model(source, target), make_model()(source, target), atol=1e-3)


# ---------------------------------------------------------------------- attention maps


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_attention_maps_are_the_weights_of_every_layer(make_model, make_ids, norm):
    model = make_model(norm=norm)
    source, target = make_ids(5, 3), make_ids(4, 6, seed=1, bos=True)
    maps = model.attention_maps(source, target)
    assert isinstance(maps, AttentionMaps)
    assert [m.shape for m in maps.encoder] == [(2, 4, 5, 5)] * 2
    assert [m.shape for m in maps.decoder] == [(2, 4, 6, 6)] * 3
    assert [m.shape for m in maps.cross] == [(2, 4, 6, 5)] * 3
    for weights in maps.encoder + maps.decoder + maps.cross:
        torch.testing.assert_close(weights.sum(-1), torch.ones_like(weights[..., 0]))
    for weights in maps.encoder + maps.cross:
        assert (weights[1, ..., 3:] == 0).all() and (weights[0] > 0).all()
    for weights in maps.decoder:
        assert (weights.triu(1) == 0).all() and (weights[0, :, :, 4:] == 0).all()
        assert (weights[1].diagonal(dim1=-2, dim2=-1) > 0).all()
    layers = [layer.self_attention for layer in model.encoder]
    for attention, weights in zip(layers, maps.encoder, strict=True):
        assert_made_by(model, attention, weights, source, target)


def assert_made_by(model, attention, weights: Tensor, source: Tensor, target: Tensor):
    """Check that the map explains what came out of this attention in an ordinary pass."""
    seen = []
    hook = attention.register_forward_hook(
        lambda m, inputs, output: seen.append((inputs[0], output))
    )
    model(source, target)
    hook.remove()
    ((x, output),) = seen
    _, value = attention.project_memory(x)
    heads = (weights @ value).transpose(1, 2).flatten(2)
    torch.testing.assert_close(attention.out_projection(heads), output)


def test_asking_for_maps_does_not_change_the_output(make_model, make_ids):
    model = make_model()
    source, target = make_ids(5, 3), make_ids(4, 6, seed=1, bos=True)
    memory = model.encode(source)
    torch.testing.assert_close(model.encode(source, []), memory)
    torch.testing.assert_close(
        model.decoder_states(target, memory, source, [], []),
        model.decoder_states(target, memory, source),
    )
    before = model(source, target)
    model.attention_maps(source, target)
    assert torch.equal(model(source, target), before)


# ---------------------------------------------------------------------- activation checkpointing


@pytest.mark.parametrize("rates", [dict(dropout=0.0), dict(dropout=0.3, attention_dropout=0.2)])
def test_checkpointing_gives_the_same_gradients(make_model, make_ids, rates):
    model = make_model(**rates).train()
    source, target = make_ids(5, 3), make_ids(4, 6, seed=1, bos=True)
    runs: list[int] = []
    for layer in [*model.encoder, *model.decoder]:
        layer.feed_forward.register_forward_hook(lambda *_: runs.append(1))
    results = []
    for checkpointing in (False, True):
        model.checkpoint_activations = checkpointing
        model.zero_grad()
        torch.manual_seed(5)
        logits = model(source, target)
        logits.sin().sum().backward()
        results.append([logits.detach()] + [p.grad.clone() for p in model.parameters()])
    torch.testing.assert_close(results[0], results[1])
    assert len(runs) == 5 + 10  # each layer ran once more in the backward pass


def test_checkpointing_is_for_training_only(make_model, make_ids):
    model = make_model()
    model.checkpoint_activations = True
    runs: list[int] = []
    model.encoder[0].feed_forward.register_forward_hook(lambda *_: runs.append(1))
    model(make_ids(5), make_ids(4, bos=True)).sin().sum().backward()
    assert len(runs) == 1


# ---------------------------------------------------------------------- dropout


@pytest.fixture
def dropped(monkeypatch):
    """Record (shape, rate) of every dropout that is active."""
    calls: list[tuple[tuple[int, ...], float]] = []
    dropout, plain = Dropout.forward, F.dropout
    attention = F.scaled_dot_product_attention

    def watch_dropout(self, x):
        if self.training and self.p:
            calls.append((tuple(x.shape), self.p))
        return dropout(self, x)

    def watch_plain(x, p=0.5, training=True, inplace=False):
        if training and p:
            calls.append((tuple(x.shape), p))
        return plain(x, p, training, inplace)

    def watch_attention(query, key, value, attn_mask=None, dropout_p=0.0, **options):
        if dropout_p:
            calls.append(((*query.shape[:3], key.size(2)), dropout_p))
        return attention(query, key, value, attn_mask=attn_mask, dropout_p=dropout_p, **options)

    monkeypatch.setattr(Dropout, "forward", watch_dropout)
    monkeypatch.setattr(F, "dropout", watch_plain)
    monkeypatch.setattr(F, "scaled_dot_product_attention", watch_attention)
    return calls


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_dropout_is_where_the_paper_has_it(make_model, make_ids, dropped, norm):
    """On the two sums of embedding and position, and on each sub-layer's output: no more."""
    model = make_model(norm=norm, dropout=0.2).train()
    model(make_ids(5), make_ids(4, bos=True))
    assert dropped == [((1, 5, 16), 0.2)] * (1 + 2 * 2) + [((1, 4, 16), 0.2)] * (1 + 3 * 3)


def test_dropout_falls_on_the_sum_of_embedding_and_position(make_model, make_ids):
    model = make_model(positions="learned").train()
    seen: list[Tensor] = []
    model.dropout.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0]))
    source, target = make_ids(5), make_ids(4, bos=True)
    model(source, target)
    expected = [
        model.positions(model.embedding(source)),
        model.target_positions(model.embedding(target)),
    ]
    torch.testing.assert_close(seen, expected)


def test_other_dropouts_have_rates_of_their_own(make_model, make_ids, dropped):
    rates = dict(dropout=0.0, attention_dropout=0.3, activation_dropout=0.4)
    make_model(**rates).train()(make_ids(5), make_ids(6, bos=True))
    encoder = [((1, 4, 5, 5), 0.3), ((1, 5, 28), 0.4)]
    decoder = [((1, 4, 6, 6), 0.3), ((1, 4, 6, 5), 0.3), ((1, 6, 28), 0.4)]
    assert dropped == encoder * 2 + decoder * 3


def test_no_dropout_outside_training_or_at_rate_zero(make_model, make_ids, dropped):
    rates = dict(dropout=0.2, attention_dropout=0.3, activation_dropout=0.4)
    model, source, target = make_model(**rates), make_ids(5), make_ids(4, bos=True)
    model(source, target)
    model.attention_maps(source, target)
    model.decode_next(target[:, 0], model.start_decoding(source, max_length=2))
    make_model(dropout=0.0).train()(source, target)
    assert dropped == []


def test_dropout_of_embeddings_reaches_both_sides(make_model, make_ids):
    model = make_model(dropout=0.5).train()
    source = make_ids(5)
    assert not torch.equal(model.encode(source), model.encode(source))
    model.eval()
    assert torch.equal(model.encode(source), model.encode(source))


# ---------------------------------------------------------------------- types and devices


@pytest.mark.parametrize("device", ["cpu", CUDA])
@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize(
    "dtype, tolerance", [(torch.float32, 1e-4), (torch.bfloat16, 0.2), (torch.float16, 0.03)]
)
def test_number_types(make_model, make_ids, dtype, tolerance, norm, device):
    source, target = make_ids(5, 3), make_ids(4, 6, seed=1, bos=True)
    expected = make_model(norm=norm)(source, target)
    model = make_model(norm=norm, dtype=dtype).to(device)
    logits = model(source.to(device), target.to(device))
    assert logits.dtype == dtype and logits.device.type == device
    torch.testing.assert_close(logits.double().cpu(), expected, atol=tolerance, rtol=tolerance)
    logits.float().sin().sum().backward()
    assert all(p.grad.isfinite().all() and p.grad.dtype == dtype for p in model.parameters())


@pytest.mark.parametrize("device", ["cpu", CUDA])
def test_autocast(make_model, make_ids, device):
    source, target = make_ids(5, 3).to(device), make_ids(4, 6, seed=1, bos=True).to(device)
    model = make_model(dtype=torch.float32).to(device)
    expected = model(source, target)
    with torch.autocast(device, dtype=torch.bfloat16):
        logits = model(source, target)
    assert logits.dtype == torch.bfloat16
    torch.testing.assert_close(logits.float(), expected, atol=0.2, rtol=0.2)


# ---------------------------------------------------------------------- limits and errors


@pytest.mark.parametrize("positions", ["sinusoidal", "sinusoidal-t2t"])
def test_odd_d_model(make_model, make_ids, positions):
    model = make_model(d_model=15, num_heads=3, positions=positions)
    assert model(make_ids(5), make_ids(4, bos=True)).isfinite().all()
    model = make_model(d_model=15, num_heads=4, d_k=3, d_v=2, positions=positions)
    assert model(make_ids(5), make_ids(4, bos=True)).isfinite().all()


def test_d_model_that_heads_do_not_divide(make_model):
    with pytest.raises(ValueError, match="d_model=15, num_heads=4"):
        make_model(d_model=15)


@pytest.mark.parametrize("bad", [-1, 19])
def test_ids_out_of_range(make_model, make_ids, bad):
    model = make_model()
    good, wrong = make_ids(4), make_ids(4)
    wrong[0, 2] = bad
    for source, target in [(wrong, good), (good, wrong)]:
        with pytest.raises(ValueError, match=rf"0\.\.18.*{bad}"):
            model(source, target)
    with pytest.raises(ValueError, match=r"0\.\.18"):
        model.decode_next(torch.tensor([bad]), model.start_decoding(good, max_length=2))


@pytest.mark.parametrize("positions", ["sinusoidal", "sinusoidal-t2t"])
def test_sinusoids_know_no_longest_sequence(make_model, make_ids, positions):
    short, long = (make_model(positions=positions, max_length=n) for n in (2, 64))
    source, target = make_ids(9, 7), make_ids(11, 3, seed=1, bos=True)
    torch.testing.assert_close(short(source, target), long(source, target))


def test_learned_positions_end(make_model, make_ids):
    model = make_model(positions="learned", max_length=6)
    model(make_ids(6), make_ids(6, bos=True))
    for lengths in [(7, 6), (6, 7)]:
        with pytest.raises(ValueError, match="only 6 were learned"):
            model(make_ids(lengths[0]), make_ids(lengths[1], bos=True))


def test_it_can_learn(make_model, make_ids):
    """One small batch is learned by heart: the pieces fit together in training."""
    model = make_model(dtype=torch.float32, dropout=0.0).train()
    source, target = make_ids(5, 5), make_ids(6, 6, seed=1, bos=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(60):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(source, target)[:, :-1].flatten(0, 1), target[:, 1:].flatten())
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.2  # guessing costs log(19) = 2.9
