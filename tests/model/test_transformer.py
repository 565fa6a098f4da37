"""The whole model: its pieces in order, checkpointing, dropout, types, errors."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.model.small import draw, make_batch, make_ids, make_model
from transformer.fast import enable

CUDA = pytest.param(
    "cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")
)
NORMS = pytest.mark.parametrize("norm", ["post", "pre"])


@pytest.mark.parametrize(
    "changes",
    [dict(positions="sinusoidal-t2t"), dict(positions="learned"), dict(activation="gelu")]
    + [dict(norm="pre"), dict(attention_scale=1.0), dict(layer_norm_eps=0.1)],
)
def test_every_option_changes_the_result(changes):
    batch, usual, model = make_batch(), make_model(), make_model(**changes)
    model.load_state_dict(usual.state_dict(), strict=False)
    assert not torch.allclose(model(*batch), usual(*batch), atol=1e-3)


# ---------------------------------------------------------------------- activation checkpointing


@pytest.mark.parametrize("rates", [dict(dropout=0.0), dict(dropout=0.3, attention_dropout=0.2)])
def test_checkpointing_gives_the_same_gradients(rates):
    model, batch = make_model(**rates).train(), make_batch()
    runs: list[int] = []
    for layer in [*model.encoder, *model.decoder]:
        layer.feed_forward.register_forward_hook(lambda *_: runs.append(1))
    results = []
    for checkpointing in (False, True):
        model.checkpoint_activations = checkpointing
        model.zero_grad()
        torch.manual_seed(5)
        logits = model(*batch)
        logits.sin().sum().backward()
        results.append([logits.detach()] + [p.grad.clone() for p in model.parameters()])
    torch.testing.assert_close(results[0], results[1])
    assert len(runs) == 5 + 10  # each layer ran once more in the backward pass
    model.eval()(*batch).sin().sum().backward()
    assert len(runs) == 5 + 10 + 5  # no checkpointing outside training


# ---------------------------------------------------------------------- dropout


@pytest.fixture
def dropped(monkeypatch):
    """Record (shape, rate) of every dropout that is active."""
    calls: list[tuple[tuple[int, ...], float]] = []
    dropout, attention = F.dropout, F.scaled_dot_product_attention

    def watch_dropout(x, p=0.5, training=True, inplace=False):
        if training and p:
            calls.append((tuple(x.shape), p))
        return dropout(x, p, training, inplace)

    def watch_attention(query, key, value, mask=None, dropout_p=0.0, *rest, **options):
        if dropout_p:
            calls.append(((*query.shape[:3], key.size(2)), dropout_p))
        return attention(query, key, value, mask, dropout_p, *rest, **options)

    monkeypatch.setattr(F, "dropout", watch_dropout)
    monkeypatch.setattr(F, "scaled_dot_product_attention", watch_attention)
    return calls


@NORMS
def test_dropout_is_where_the_paper_has_it(dropped, norm):
    model = make_model(norm=norm, dropout=0.2, positions="learned").train()
    sums: list[Tensor] = []
    model.dropout.register_forward_pre_hook(lambda module, inputs: sums.append(inputs[0]))
    source, target = make_ids(5), make_ids(4, bos=True)
    model(source, target)
    assert dropped == [((1, 5, 16), 0.2)] * (1 + 2 * 2) + [((1, 4, 16), 0.2)] * (1 + 3 * 3)
    encoder = model.positions(model.embedding(source))
    decoder = model.target_positions(model.embedding(target))
    torch.testing.assert_close(sums, [encoder, decoder])


def test_other_dropouts_have_rates_of_their_own(dropped):
    rates = dict(dropout=0.0, attention_dropout=0.3, activation_dropout=0.4)
    make_model(**rates).train()(make_ids(5), make_ids(6, bos=True))
    encoder = [((1, 4, 5, 5), 0.3), ((1, 5, 28), 0.4)]
    decoder = [((1, 4, 6, 6), 0.3), ((1, 4, 6, 5), 0.3), ((1, 6, 28), 0.4)]
    assert dropped == encoder * 2 + decoder * 3


def test_no_dropout_outside_training_or_at_rate_zero(dropped):
    rates = dict(dropout=0.2, attention_dropout=0.3, activation_dropout=0.4)
    model, source, target = make_model(**rates), make_ids(5), make_ids(4, bos=True)
    model(source, target)
    model.attention_weights(source, target)
    model.decode_next(target[:, 0], model.start_decoding(source, max_length=2))
    make_model(dropout=0.0).train()(source, target)
    assert dropped == []


# ---------------------------------------------------------------------- types, devices, limits


@pytest.mark.parametrize("device", ["cpu", CUDA])
@NORMS
@pytest.mark.parametrize(
    "dtype, tolerance", [(torch.float32, 1e-4), (torch.bfloat16, 0.2), (torch.float16, 0.03)]
)
def test_number_types(dtype, tolerance, norm, device):
    source, target = make_batch()
    expected = make_model(norm=norm)(source, target)
    model = make_model(norm=norm, dtype=dtype).to(device)
    logits = model(source.to(device), target.to(device))
    assert logits.dtype == dtype and logits.device.type == device
    torch.testing.assert_close(logits.double().cpu(), expected, atol=tolerance, rtol=tolerance)
    logits.float().sin().sum().backward()
    assert all(p.grad.isfinite().all() and p.grad.dtype == dtype for p in model.parameters())


@pytest.mark.parametrize("device", ["cpu", CUDA])
def test_autocast(device):
    batch = [ids.to(device) for ids in make_batch()]
    model = make_model(dtype=torch.float32).to(device)
    with torch.autocast(device, dtype=torch.bfloat16):
        logits = model(*batch)
    assert logits.dtype == torch.bfloat16
    torch.testing.assert_close(logits.float(), model(*batch), atol=0.2, rtol=0.2)


@pytest.mark.parametrize("positions", ["sinusoidal", "sinusoidal-t2t"])
def test_odd_d_model_and_sequences_longer_than_max_length(positions):
    for sizes in (dict(num_heads=3), dict(d_k=3, d_v=2)):
        sizes |= dict(d_model=15, positions=positions)
        short, long = make_model(max_length=2, **sizes), make_model(max_length=64, **sizes)
        torch.testing.assert_close(short(*make_batch()), long(*make_batch()))
    with pytest.raises(ValueError, match="d_model=15, num_heads=4"):
        make_model(d_model=15)


@pytest.mark.parametrize("bad", [-1, 19])
def test_ids_out_of_range(bad):
    model, good, wrong = make_model(), make_ids(4), make_ids(4)
    wrong[0, 2] = bad
    for source, target in [(wrong, good), (good, wrong)]:
        with pytest.raises(ValueError, match=rf"0\.\.18.*{bad}"):
            model(source, target)
    with pytest.raises(ValueError, match=r"0\.\.18"):
        model.decode_next(torch.tensor([bad]), model.start_decoding(good, max_length=2))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("fast", [False, True])
def test_sources_and_targets_that_do_not_fit_are_refused(unchecked, training, fast):
    model, (source, target) = make_model().train(training), make_batch()
    if fast:
        enable(model)
    with pytest.raises(ValueError, match="target must have 2 rows like source, got 1"):
        model(source, target[:1])
    for name, pair in dict(source=(source[:, :0], target), target=(source, target[:, :0])).items():
        with pytest.raises(ValueError, match=rf"{name} must hold ids.*got shape \(2, 0\)"):
            model(*pair)
    for name, pair in dict(source=(source[0], target), target=(source, target[0])).items():
        with pytest.raises(ValueError, match=rf"{name} must hold ids.*got shape \(\d,\)"):
            model(*pair)
    for kind in (torch.int16, torch.bool, torch.float32):
        pairs = dict(source=(source.to(kind), target), target=(source, target.to(kind)))
        for name, pair in pairs.items():
            with pytest.raises(ValueError, match=f"{name} must hold ids.*int64.*got {kind}"):
                model(*pair)


def test_the_checks_break_no_graph(unchecked):
    model = make_model(num_layers=1, num_decoder_layers=1)
    source, target = make_batch()
    whole = torch.compile(model, fullgraph=True, backend="eager", dynamic=True)
    torch.testing.assert_close(whole(source, target), model(source, target))


def test_a_module_in_place_of_the_output_projection_is_trained_and_used():
    """As in fine-tuning with LoRA: the matrix stays, and a small update of it is learned."""

    class Adapted(torch.nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base = base.requires_grad_(False)
            self.down = torch.nn.Parameter(draw(2, base.in_features, seed=1))
            self.up = torch.nn.Parameter(draw(base.out_features, 2, seed=2))

        @property
        def weight(self):
            return self.base.weight

        def forward(self, x):
            return self.base(x) + x @ self.down.T @ self.up.T

    model = make_model(sharing="none")
    assert model.output_weight is model.output.weight
    model.output = Adapted(model.output)
    source, target = make_ids(5, 3), make_ids(4, 4, bos=True)
    states = model.decoder_states(target, model.encode(source), source)
    torch.testing.assert_close(states @ model.output_weight.T, model.logits(states))
    model.output_weight.sum().backward()
    assert model.output.up.grad.abs().sum() > 0 and model.output.base.weight.grad is None


def test_ids_in_a_list_are_refused_in_one_sentence(monkeypatch):
    monkeypatch.setattr("jaxtyping.config.jaxtyping_disable", True)
    with pytest.raises(TypeError, match="source must be a tensor of ids of shape .*, got a list"):
        make_model()([[1, 2]], [[1]])
