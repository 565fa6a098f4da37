"""A model without the causal mask copies its labels; the record has every run."""

import numpy as np
import torch

from transformer.inference.decoding import greedy_search
from transformer.recipes.record import read_record
from transformer_book.studies.masks.peeking import PeekingTransformer
from transformer_book.studies.masks.unmasked import (
    MASKS,
    RECORD,
    SEEDS,
    STEPS,
    TASK,
    dependence,
    forced,
    learn,
    measure,
    numbers_of,
    seeing,
)
from transformer_book.studies.toy import EOS, PAD, toy_config


def untrained(future, seed=0):
    torch.manual_seed(seed)
    return PeekingTransformer(toy_config(TASK, d_model=16, d_ff=16), future).eval()


class Copier(torch.nn.Module):
    """Predicts the input one place to the right: the label, as long as it is there."""

    def forward(self, source, target):
        ahead = torch.cat([target[:, 1:], torch.zeros_like(target[:, :1])], dim=1)
        guess = torch.where(ahead == PAD, EOS, ahead)
        return torch.nn.functional.one_hot(guess, TASK.vocab_size).float()


def test_teacher_forcing_counts_whole_sequences():
    batch = TASK.batch(20, seed=0)
    assert forced(Copier(), batch) == 1
    batch.labels[0, 0] = batch.labels[0, 0] % 10 + 3  # one wrong symbol, one wrong sequence
    assert forced(Copier(), batch) == 19 / 20


def test_a_run_is_repeatable_and_measures_generation():
    model, found = learn("causal mask", 3, steps=(2, 4), size=10)
    _, again = learn("causal mask", 3, steps=(2, 4), size=10)
    assert found == again and len(found) == 2 and model.future == 0
    batch = TASK.batch(10, seed=10**12 + 1)
    written = greedy_search(model, batch.source, batch.labels.size(1) + 5)
    assert found[-1]["empty"] == sum(not one.tokens for one in written) / 10


def test_the_mask_is_put_on_for_a_while_only():
    model = untrained(99)
    with seeing(model, 0):
        assert model.future == 0
        assert dependence(model, pairs=1)["label"] == 0
    assert model.future == 99
    assert measure(model, size=3).keys() >= {"causal forced", "causal generated"}


def test_the_record_has_every_run_and_counts_of_200():
    runs = read_record(RECORD)["runs"]
    for mask in MASKS:
        shares = numbers_of(runs, mask, "generated")
        assert shares.shape == (len(SEEDS), len(STEPS))
        assert np.allclose(shares * 200, np.round(shares * 200))
    # What is right given the truth is what greedy search writes, and the other way round.
    given, written = (numbers_of(runs, "causal mask", name) for name in ("forced", "generated"))
    assert np.abs(given - written).max() < 0.011
