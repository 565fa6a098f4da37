"""The convolutional baseline: padding, the past, the window, the search, and its attention."""

import pytest
import torch

from transformer.baselines import ConvolutionalConfig, ConvolutionalTranslator
from transformer.baselines.convolutional import GatedConvolution
from transformer.inference.decoding import beam_search, greedy_search
from transformer.inference.stepwise import StepwiseModel
from transformer.lab.toys.toy import REVERSE, exact_match, train_toy

SOURCE = torch.tensor([[3, 4, 5, 6, 2], [7, 8, 2, 0, 0], [9, 2, 0, 0, 0]])
TARGET = torch.tensor([[1, 9, 10, 11], [1, 12, 13, 0], [1, 14, 3, 4]])


def make(**changes) -> ConvolutionalTranslator:
    torch.manual_seed(0)
    sizes = dict(vocab_size=15, d_model=16, num_layers=2, max_length=40) | changes
    return ConvolutionalTranslator(ConvolutionalConfig(**sizes)).double().eval()


def test_padding_changes_nothing():
    model = make()
    model.keys.bias.data.fill_(1.0)  # as after training
    together = model(SOURCE, TARGET)
    for row, length in enumerate((5, 3, 2)):
        alone = model(SOURCE[row : row + 1, :length], TARGET[row : row + 1])
        torch.testing.assert_close(together[row], alone[0])
    assert (model.encode(SOURCE)[SOURCE == 0] == 0).all()


def test_no_output_depends_on_what_follows():
    model, changed = make(), TARGET.clone()
    changed[:, 2] = 5
    before, after = model(SOURCE, TARGET), model(SOURCE, changed)
    assert torch.equal(before[:, :2], after[:, :2])
    assert not torch.isclose(before[:, 2:], after[:, 2:]).all(dim=-1).any()


@pytest.mark.parametrize("kernel, num_layers", [(3, 1), (3, 2), (5, 2), (1, 2)])
def test_a_stack_sees_depth_times_kernel_minus_one_positions_more(kernel, num_layers):
    model = make(kernel=kernel, num_layers=num_layers)
    source = torch.arange(3, 14)[None]  # 11 positions
    middle, reach = 5, num_layers * (kernel // 2)
    changed = source.clone()
    changed[0, middle] = 14
    moved = (model.encode(changed) != model.encode(source)).any(dim=-1)[0]
    assert moved.nonzero().flatten().tolist() == [
        i for i in range(11) if abs(i - middle) <= min(reach, 5)
    ]


def test_every_source_token_counts_and_so_does_order():
    model, first = make(), SOURCE[:1]
    before = model(first, TARGET[:1])
    for place in range(5):
        changed = first.clone()
        changed[0, place] = 12
        assert not torch.isclose(model(changed, TARGET[:1]), before).any(dim=-1).all()
    assert not torch.allclose(model(first.flip(1), TARGET[:1]), before)


@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_token_by_token_is_the_same_as_teacher_forcing(kernel):
    model = make(kernel=kernel)
    at_once = model(SOURCE, TARGET)
    state = model.start_decoding(SOURCE, max_length=4)
    for t in range(4):
        logits = model.decode_next(TARGET[:, t], state)
        torch.testing.assert_close(logits, at_once[:, t])


def test_a_reordered_state_continues_the_rows_it_was_given():
    model = make()
    state = model.start_decoding(SOURCE, max_length=4, beam_size=2)
    model.decode_next(torch.tensor([1, 3, 1, 4, 1, 5]), state)
    state.reorder(torch.tensor([1, 0, 5, 5]))  # the middle sentence leaves
    logits = model.decode_next(torch.tensor([6, 7, 8, 9]), state)
    prefixes = torch.tensor([[3, 6], [1, 7], [5, 8], [5, 9]])
    torch.testing.assert_close(logits, model(SOURCE[[0, 0, 2, 2]], prefixes)[:, -1])


def test_the_searches_run_on_it():
    model = make()
    assert isinstance(model, StepwiseModel)
    best = beam_search(model, SOURCE, 3, 0.0, 6)
    for found, first in zip(best, greedy_search(model, SOURCE, 6), strict=True):
        assert found.score >= first.score - 1e-6 or not found.finished
    # The probability that the search reports is the one that teacher forcing gives.
    labels = [*best[0].tokens, 2][: len(best[0].tokens) + best[0].finished]
    inputs = torch.tensor([[1, *labels[:-1]]])
    steps = model(SOURCE[:1], inputs).log_softmax(-1)[0]
    total = steps[range(len(labels)), labels].sum().item()
    assert best[0].log_probability == pytest.approx(total, abs=1e-5)


def test_a_sequence_longer_than_its_positions_is_refused_by_name():
    model = make(max_length=4)
    with pytest.raises(ValueError, match="5 positions, but only 4 were learned"):
        model.encode(SOURCE)


def test_the_gate_halves_and_the_start_keeps_the_variance():
    torch.manual_seed(0)
    layer = GatedConvolution(256, 3, 0.0)
    out = layer(torch.randn(64, 22, 256))
    assert out.shape == (64, 20, 256)
    assert 0.7 < out.std() < 1.3
    a, b = layer.convolution(torch.ones(1, 256, 3)).chunk(2, dim=1)
    torch.testing.assert_close(layer(torch.ones(1, 3, 256))[0, 0], (a * b.sigmoid())[0, :, 0])


def test_attention_is_a_step_of_every_layer_and_scaled_by_the_real_length():
    model = make()
    state = model._state(model.encode(SOURCE), SOURCE)
    attention, x = model.attention[0], torch.zeros(3, 1, 16).double()
    zeros = torch.zeros_like(state.keys)
    # Equal keys: the mean of the values, times the root of how many are real.
    values = torch.ones_like(state.values)
    read = attention(x, x, zeros, values, state.mask)
    for row, real in enumerate((5, 3, 2)):
        expected = attention.output(torch.full((16,), real**0.5).double()) * 0.5**0.5
        torch.testing.assert_close(read[row, 0], expected)
    for layer in range(2):
        for parameter in model.attention[layer].parameters():
            parameter.data.zero_()
    assert not torch.allclose(make()(SOURCE, TARGET), model(SOURCE, TARGET))


def test_gradients_reach_every_parameter():
    model = make().train()
    model(SOURCE, TARGET).sin().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name


def test_it_comes_back_from_a_folder(tmp_path):
    model = make().float()
    model.save_pretrained(tmp_path)
    loaded = ConvolutionalTranslator.from_pretrained(tmp_path)
    assert loaded.config == model.config
    torch.testing.assert_close(loaded.eval()(SOURCE, TARGET), model(SOURCE, TARGET))


@pytest.mark.parametrize(
    "changes, message",
    [(dict(kernel=2), "kernel must be odd, got 2"), (dict(vocab_size=0), "vocab_size"),
     (dict(dropout=1.0), r"dropout must be in \[0, 1\), got 1.0"),
     (dict(num_layers=0), "num_layers must be at least 1, got 0")],
)  # fmt: skip
def test_wrong_sizes_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        ConvolutionalConfig(**dict(vocab_size=15) | changes)


def test_it_learns_to_reverse():
    torch.manual_seed(0)
    model = ConvolutionalTranslator(
        ConvolutionalConfig(REVERSE.vocab_size, d_model=48, num_layers=3, max_length=32)
    )
    losses = train_toy(model, REVERSE, steps=150, rate=3e-3, batch_size=32)
    assert losses[-10:].mean() < 0.5 * losses[:10].mean()
    assert exact_match(model, REVERSE, size=40, length=4) > 0.3
