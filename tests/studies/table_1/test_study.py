"""Timings and memory are measured over the grid, and the record is read back."""

import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from transformer.recipes.record import write_record
from transformer_book.studies.layer_types import study
from transformer_book.studies.layer_types.study import Study, time_layers, time_threads


class Waits(nn.Module):
    """Takes a known time for each position and size."""

    def __init__(self, d_model, factor=1.0):
        super().__init__()
        self.seconds = factor * 1e-5 * d_model

    def forward(self, x):
        end = time.process_time() + self.seconds * x.size(1)
        while time.process_time() < end:
            pass
        return x


def test_layers_are_timed_over_the_grid():
    makes = {"short": Waits, "long": lambda d: Waits(d, 3)}
    seconds = time_layers(makes, (10, 20, 40), (1, 3), repeats=2)
    assert {values.shape for values in seconds.values()} == {(2, 2, 3)}
    expected = 1e-5 * np.outer([1, 3], [10, 20, 40])
    np.testing.assert_allclose(seconds["short"].min(0), expected, rtol=0.5)
    np.testing.assert_allclose(seconds["long"].min(0), 3 * expected, rtol=0.5)


class Counts(nn.Module):
    """Counts sequences, and the gradients that reach its input."""

    def __init__(self, d_model):
        super().__init__()
        self.sequences, self.gradients = set(), 0

    def forward(self, x):
        self.sequences.add(len(x))
        if torch.is_grad_enabled():
            x.register_hook(self.count)
        end = time.process_time() + 0.002
        while time.process_time() < end:
            pass
        return 1 * x

    def count(self, gradient):
        self.gradients += 1


@pytest.mark.parametrize("backward", [False, True])
def test_a_batch_is_timed_with_or_without_its_backward_pass(backward):
    made = []
    makes = {"one": lambda d: made.append(Counts(d)) or made[-1]}
    seconds = time_layers(makes, (3,), (2,), repeats=2, batch=5, backward=backward)
    assert seconds["one"].shape == (2, 1, 1)
    assert all(layer.sequences == {5} for layer in made)
    assert all((layer.gradients > 0) == backward for layer in made)


class TakesTurns(nn.Module):
    """Takes a second on each of its threads, one after the other, by a clock of its own."""

    now = 0.0

    def __init__(self, d_model):
        super().__init__()
        self.threads = []

    def forward(self, x):
        self.threads.append(torch.get_num_threads())
        TakesTurns.now += self.threads[-1]
        return x


def test_each_number_of_threads_is_timed_by_the_clock(monkeypatch):
    monkeypatch.setattr(study, "time", SimpleNamespace(perf_counter=lambda: TakesTurns.now))
    made = []
    makes = {name: lambda d: made.append(TakesTurns(d)) or made[-1] for name in ("one", "other")}
    before = torch.get_num_threads()
    seconds = time_threads(makes, (2, 3), 4, threads=(1, 2), repeats=3)
    assert torch.get_num_threads() == before
    assert all(set(layer.threads) == {1, 2} for layer in made)
    for values in seconds.values():
        assert values.shape == (3, 2, 2)
        assert (values[:, 0] == 1).all() and (values[:, 1] == 2).all()


def test_a_study_is_read_by_length_and_by_size(tmp_path):
    lengths, sizes = [10, 20, 40], [2, 4]
    first = [[[n * n * d for n in lengths] for d in sizes]] * 2
    second = [[[n * d * d * 8 for n in lengths] for d in sizes]] * 2
    record = dict(lengths=lengths, sizes=sizes, seconds=dict(first=first, second=second), memory={})
    study = Study(write_record(tmp_path / "study.json", record))
    assert study.over_lengths("first", 4).tolist() == [[400, 1600, 6400]] * 2
    assert study.over_sizes("first", 20).tolist() == [[800, 1600]] * 2
    low, high = study.crossovers("first", "second")  # at n = 8 d
    assert low == pytest.approx([16, 16]) and high == pytest.approx([32, 32])
