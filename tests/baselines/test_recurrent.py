"""The recurrent baseline: padding, the past, the search, and what attention gives it."""

import pytest
import torch

from transformer.baselines import RecurrentConfig, RecurrentTranslator
from transformer.inference.decoding import beam_search, greedy_search
from transformer.inference.stepwise import StepwiseModel
from transformer.lab.toys.toy import REVERSE, exact_match, train_toy

SOURCE = torch.tensor([[3, 4, 5, 6, 2], [7, 8, 2, 0, 0], [9, 2, 0, 0, 0]])
TARGET = torch.tensor([[1, 9, 10, 11], [1, 12, 13, 0], [1, 14, 3, 4]])


def make(attention: bool, **changes) -> RecurrentTranslator:
    torch.manual_seed(0)
    config = RecurrentConfig(**dict(vocab_size=15, d_model=16, attention=attention) | changes)
    return RecurrentTranslator(config).double().eval()


both = pytest.mark.parametrize("attention", [True, False])


@both
def test_padding_changes_nothing(attention):
    model = make(attention)
    together = model(SOURCE, TARGET)
    for row, length in enumerate((5, 3, 2)):
        alone = model(SOURCE[row : row + 1, :length], TARGET[row : row + 1])
        torch.testing.assert_close(together[row], alone[0])
    memory = model.encode(SOURCE)
    assert (memory[SOURCE == 0] == 0).all() and (memory[SOURCE != 0] != 0).all()


@both
def test_no_output_depends_on_what_follows(attention):
    model, changed = make(attention), TARGET.clone()
    changed[:, 2] = 5
    before, after = model(SOURCE, TARGET), model(SOURCE, changed)
    assert torch.equal(before[:, :2], after[:, :2])
    assert not torch.isclose(before[:, 2:], after[:, 2:]).all(dim=-1).any()


@both
def test_every_source_token_counts_and_so_does_order(attention):
    model, first = make(attention), SOURCE[:1]
    before = model(first, TARGET[:1])
    for place in range(5):
        changed = first.clone()
        changed[0, place] = 12
        assert not torch.isclose(model(changed, TARGET[:1]), before).any(dim=-1).all()
    assert not torch.allclose(model(first.flip(1), TARGET[:1]), before)


@both
def test_token_by_token_is_the_same_as_teacher_forcing(attention):
    model = make(attention)
    at_once = model(SOURCE, TARGET)
    state = model.start_decoding(SOURCE, max_length=4)
    for t in range(4):
        logits = model.decode_next(TARGET[:, t], state)
        torch.testing.assert_close(logits, at_once[:, t])


@both
def test_a_reordered_state_continues_the_rows_it_was_given(attention):
    model = make(attention)
    state = model.start_decoding(SOURCE, max_length=4, beam_size=2)
    model.decode_next(torch.tensor([1, 3, 1, 4, 1, 5]), state)
    state.reorder(torch.tensor([1, 0, 5, 5]))  # the middle sentence leaves
    logits = model.decode_next(torch.tensor([6, 7, 8, 9]), state)
    prefixes = torch.tensor([[3, 6], [1, 7], [5, 8], [5, 9]])
    expected = model(SOURCE[[0, 0, 2, 2]], prefixes)[:, -1]
    torch.testing.assert_close(logits, expected)


@both
def test_the_searches_run_on_it(attention):
    model = make(attention)
    assert isinstance(model, StepwiseModel)
    greedy = greedy_search(model, SOURCE, 6)
    assert [h.tokens for h in beam_search(model, SOURCE, 1, max_length=6)] == [
        h.tokens for h in greedy
    ]
    for best, first in zip(beam_search(model, SOURCE, 4, 0.0, 6), greedy, strict=True):
        assert best.score >= first.score - 1e-6 or not best.finished
    # The probability that the search reports is the one that teacher forcing gives.
    best = beam_search(model, SOURCE[1:2, :3], 3, 0.0, 6)[0]
    labels = torch.tensor([[*best.tokens, 2]])
    target = torch.tensor([[1, *best.tokens]])
    steps = model(SOURCE[1:2, :3], target).log_softmax(-1)
    total = steps.gather(-1, labels[..., None])[: 6 if best.finished else None].sum().item()
    if best.finished:
        assert best.log_probability == pytest.approx(total, abs=1e-5)


def test_attention_weights_and_the_bottleneck():
    """With attention the context moves from step to step; without it never does."""
    model, maps = make(True), []
    model.decoder_states(TARGET, model.encode(SOURCE), SOURCE, maps)
    weights = torch.cat(maps, dim=1)  # (B, T, S)
    torch.testing.assert_close(weights.sum(-1), torch.ones(3, 4).double())
    assert (weights[1, :, 3:] == 0).all() and (weights[0].diff(dim=0).abs() > 0).any()

    # Without attention only the two final states reach the decoder.
    model = make(False)
    memory = model.encode(SOURCE)
    states, disturbed = model.decoder_states(TARGET, memory, SOURCE), memory.clone()
    disturbed[0, 1:4] = 9.0  # neither the first nor the last position
    disturbed[0, 0, :8] = disturbed[0, 4, 8:] = 9.0  # their other directions
    torch.testing.assert_close(model.decoder_states(TARGET, disturbed, SOURCE), states)


def test_the_two_differ_in_the_attention_alone():
    with_attention, without = make(True), make(False)
    names = {name for name, _ in with_attention.named_parameters()}
    extra = names - {name for name, _ in without.named_parameters()}
    assert all(name.startswith("attention.") for name in extra)
    assert with_attention.num_parameters() - without.num_parameters() == 2 * 16 * 16 + 16


def test_gradients_reach_every_parameter():
    for attention in (True, False):
        model = make(attention).train()
        model(SOURCE, TARGET).sin().sum().backward()
        assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in model.parameters())


@pytest.mark.parametrize(
    "changes, message",
    [(dict(d_model=15), "d_model must be even, got 15"), (dict(vocab_size=0), "vocab_size"),
     (dict(d_hidden=7), "d_hidden must be even, got 7"), (dict(d_hidden=0), "d_hidden must be at"),
     (dict(dropout=1.0), r"dropout must be in \[0, 1\), got 1.0")],
)  # fmt: skip
def test_wrong_sizes_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        RecurrentConfig(**dict(vocab_size=15) | changes)


def test_it_learns_to_reverse():
    torch.manual_seed(0)
    model = RecurrentTranslator(RecurrentConfig(REVERSE.vocab_size, d_model=48))
    losses = train_toy(model, REVERSE, steps=150, rate=5e-3, batch_size=32)
    assert losses[-10:].mean() < 0.5 * losses[:10].mean()
    assert exact_match(model, REVERSE, size=40, length=4) > 0.3
