"""What the Transformer's rivals have in common: padding, the past, the search, saving, learning."""

import json
import subprocess
import sys
from functools import partial

import pytest
import torch

from transformer import fast
from transformer.baselines import (
    ConvolutionalConfig,
    ConvolutionalTranslator,
    RecurrentConfig,
    RecurrentTranslator,
)
from transformer.data.tokenizer import Tokenizer
from transformer.inference.decoding import beam_search, greedy_search
from transformer.inference.translator import Translator
from transformer.model.base import TranslationModel
from transformer.model.transformer import Transformer

SOURCE = torch.tensor([[3, 4, 5, 6, 2], [7, 8, 2, 0, 0], [9, 2, 0, 0, 0]])
TARGET = torch.tensor([[1, 9, 10, 11], [1, 12, 13, 0], [1, 14, 3, 4]])


def recurrent(vocab_size=15, d_model=16, **changes) -> RecurrentTranslator:
    return RecurrentTranslator(RecurrentConfig(vocab_size, d_model, **changes))


def convolutional(vocab_size=15, d_model=16, **changes) -> ConvolutionalTranslator:
    options = dict(num_layers=2, max_length=40) | changes
    return ConvolutionalTranslator(ConvolutionalConfig(vocab_size, d_model, **options))


RIVALS = {
    "recurrent": recurrent,
    "without attention": partial(recurrent, attention=False),
    "convolutional": convolutional,
    "kernel of 1": partial(convolutional, kernel=1),
    "kernel of 5": partial(convolutional, kernel=5),
}


@pytest.fixture(params=RIVALS)
def model(request) -> TranslationModel:
    torch.manual_seed(0)
    model = RIVALS[request.param]().double().eval()
    for parameter in model.parameters():
        if parameter.dim() == 1:
            parameter.data += 0.2 * torch.randn_like(parameter)  # as after training
    return model


def test_padding_changes_nothing(model):
    together = model(SOURCE, TARGET)
    for row, length in enumerate((5, 3, 2)):
        alone = model(SOURCE[row : row + 1, :length], TARGET[row : row + 1])
        torch.testing.assert_close(together[row], alone[0])
    memory = model.encode(SOURCE)
    assert (memory[SOURCE == 0] == 0).all() and (memory[SOURCE != 0] != 0).all()


def test_no_output_depends_on_later_tokens(model):
    changed = TARGET.clone()
    changed[:, 2] = 5
    before, after = model(SOURCE, TARGET), model(SOURCE, changed)
    assert torch.equal(before[:, :2], after[:, :2])
    assert not torch.isclose(before[:, 2:], after[:, 2:]).all(dim=-1)[:, 0].any()


def test_token_by_token_is_the_same_as_teacher_forcing(model):
    state = model.start_decoding(SOURCE, max_length=4)
    steps = [model.decode_next(TARGET[:, t], state) for t in range(4)]
    torch.testing.assert_close(torch.stack(steps, 1), model(SOURCE, TARGET))


def test_a_reordered_state_continues_the_rows_it_was_given(model):
    state = model.start_decoding(SOURCE, max_length=4, beam_size=2)
    model.decode_next(torch.tensor([1, 3, 1, 4, 1, 5]), state)
    state.reorder(torch.tensor([1, 0, 5, 5]))  # the middle sentence leaves
    logits = model.decode_next(torch.tensor([6, 7, 8, 9]), state)
    prefixes = torch.tensor([[3, 6], [1, 7], [5, 8], [5, 9]])
    torch.testing.assert_close(logits, model(SOURCE[[0, 0, 2, 2]], prefixes)[:, -1])


def test_searches_run_on_it(model):
    assert isinstance(model, TranslationModel)
    greedy = greedy_search(model, SOURCE, 6)
    narrow = beam_search(model, SOURCE, 1, max_length=6)
    assert [h.tokens for h in narrow] == [h.tokens for h in greedy]
    best = beam_search(model, SOURCE, 3, 0.0, 6)
    assert all(
        b.score >= g.score - 1e-6 or not b.finished for b, g in zip(best, greedy, strict=True)
    )
    # The probability that the search reports is the one that teacher forcing gives.
    labels = [*best[0].tokens, 2][: len(best[0].tokens) + best[0].finished]
    steps = model(SOURCE[:1], torch.tensor([[1, *labels[:-1]]])).log_softmax(-1)[0]
    total = steps[range(len(labels)), labels].sum().item()
    assert best[0].log_probability == pytest.approx(total, abs=1e-5)


def test_gradients_reach_every_parameter_fast_or_not(model):
    expected = model(SOURCE, TARGET).detach()
    fast.enable(model)
    for training in (False, True):
        model.zero_grad()
        logits = model.train(training)(SOURCE, TARGET)
        logits.sin().sum().backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None and parameter.grad.abs().sum() > 0, name
        if not training:
            torch.testing.assert_close(logits, expected)


@pytest.mark.parametrize("make", [recurrent, convolutional])
def test_a_translator_comes_back_with_its_class(tmp_path, make):
    tokenizer = Tokenizer.train(["the cat sees a dog"] * 3, 265)
    translator = Translator(make(265).eval(), tokenizer)
    translator.save_pretrained(tmp_path)
    back = Translator.from_pretrained(tmp_path)
    assert type(back.model) is type(translator.model)
    assert back("the cat", max_length=5) == translator("the cat", max_length=5)
    # In a program that has not imported the class, too.
    code = (
        "import sys, transformer; print(transformer.Translator.from_pretrained(sys.argv[1]).model)"
    )
    done = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, check=True)
    assert done.stdout.decode().startswith(type(translator.model).__name__)
    with pytest.raises(ValueError, match=f"a {make.__name__} model, .* use Translator"):
        Transformer.from_pretrained(tmp_path)
    settings = json.loads((tmp_path / "config.json").read_text()) | dict(architecture="mine")
    (tmp_path / "config.json").write_text(json.dumps(settings))
    with pytest.raises(ValueError, match="unknown architecture 'mine'; known: .*transformer"):
        Translator.from_pretrained(tmp_path)


@pytest.mark.parametrize(
    "make, changes, message",
    [
        (recurrent, dict(d_model=15), "d_model must be even, got 15"),
        (recurrent, dict(d_hidden=7), "d_hidden must be even, got 7"),
        (recurrent, dict(d_hidden=0), "d_hidden must be None or .* at least 1, got 0"),
        (convolutional, dict(kernel=2), "kernel must be odd, got 2"),
        (convolutional, dict(dropout=1.0), r"dropout must be a number in \[0, 1\), got 1.0"),
    ],
)
def test_wrong_sizes_are_refused(make, changes, message):
    with pytest.raises(ValueError, match=message):
        make(**changes)


# ---------------------------------------------------------------------- each one's own


def test_without_attention_only_the_two_final_states_reach_the_decoder():
    model = recurrent(attention=False).double().eval()
    memory = model.encode(SOURCE)
    states, disturbed = model.decoder_states(TARGET, memory, SOURCE), memory.clone()
    disturbed[0, 1:4] = 9.0  # neither the first nor the last position
    disturbed[0, 0, :8] = disturbed[0, 4, 8:] = 9.0  # their other directions
    torch.testing.assert_close(model.decoder_states(TARGET, disturbed, SOURCE), states)
    assert recurrent().num_parameters() - model.num_parameters() == 2 * 16 * 16 + 16


@pytest.mark.parametrize("kernel, num_layers", [(3, 1), (3, 2), (5, 2), (1, 2)])
def test_each_convolution_widens_the_view_by_kernel_minus_one(kernel, num_layers):
    model = convolutional(kernel=kernel, num_layers=num_layers).double().eval()
    source = torch.arange(3, 14)[None]  # 11 positions
    changed = source.clone()
    changed[0, 5] = 14
    moved = (model.encode(changed) != model.encode(source)).any(dim=-1)[0]
    reach = num_layers * (kernel // 2)
    assert moved.nonzero().flatten().tolist() == list(range(5 - reach, 6 + reach))


def test_convolutional_attention_is_scaled_by_the_real_length():
    attention, x = convolutional().attention[0], torch.zeros(3, 1, 16)
    # Equal keys: the mean of the values, times the root of the number of real positions.
    keys, values = torch.zeros(3, 5, 16), torch.ones(3, 5, 16)
    read = attention(x, x, keys, values, (SOURCE != 0)[:, None])
    for row, real in enumerate((5, 3, 2)):
        expected = attention.output(torch.full((16,), real**0.5)) * 0.5**0.5
        torch.testing.assert_close(read[row, 0], expected)
