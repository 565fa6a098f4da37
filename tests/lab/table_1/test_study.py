"""What is timed is what the record says, and a recorded study can be read from every side."""

import json
import time

import numpy as np
import pytest
import torch
from torch import nn

from transformer.lab.table_1.study import (
    MEASURED,
    RECORD,
    TIMED,
    Study,
    cpu_seconds,
    measure_memory,
    time_layers,
)
from transformer.recipes.record import write_record


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


def test_time_is_the_time_of_one_call():
    x = torch.zeros(1, 20, 4)
    assert cpu_seconds(Waits(4), x) == pytest.approx(20 * 4e-5, rel=0.4)


def test_layers_are_timed_over_the_grid():
    makes = {"short": Waits, "long": lambda d: Waits(d, 3)}
    seconds = time_layers(makes, (10, 20, 40), (1, 3), repeats=2)
    assert {name: values.shape for name, values in seconds.items()} == {
        "short": (2, 2, 3),
        "long": (2, 2, 3),
    }
    expected = 1e-5 * np.outer([1, 3], [10, 20, 40])
    np.testing.assert_allclose(seconds["short"].min(0), expected, rtol=0.5)
    np.testing.assert_allclose(seconds["long"].min(0), 3 * expected, rtol=0.5)


def test_memory_is_measured_over_lengths():
    found = measure_memory(MEASURED["attention, written out"][0], (16, 32), 8, allocator=False)
    assert list(found) == ["tensors"] and found["tensors"][1] > 2 * found["tensors"][0]


def test_a_study_is_read_by_length_and_by_size(tmp_path):
    lengths, sizes = [10, 20, 40], [2, 4]
    first = [[[n * n * d for n in lengths] for d in sizes]] * 2
    second = [[[n * d * d * 10 for n in lengths] for d in sizes]] * 2
    record = dict(lengths=lengths, sizes=sizes, seconds=dict(first=first, second=second), memory={})
    study = Study(write_record(tmp_path / "study.json", record))
    assert study.over_lengths("first", 4).tolist() == [[400, 1600, 6400]] * 2
    assert study.over_sizes("first", 20).tolist() == [[800, 1600]] * 2
    found = study.crossovers("first", "second")  # n = 10 d
    assert (
        found[0] == pytest.approx([20, 20])
        and found[1] == [None, None]
        or found[1] == (pytest.approx([40, 40]))
    )


def test_the_record_is_whole():
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    study = Study()
    assert set(study.seconds) == set(TIMED) and set(study.memory) == set(MEASURED)
    shape = (len(study.lengths), len(study.sizes))
    for values in study.seconds.values():
        assert values.shape[0] >= 3 and values.shape[1:] == shape[::-1] and (values > 0).all()
    for found in study.memory.values():
        lengths = len(found["lengths"])
        assert len(found["tensors"]) == len(found["allocator"]) == lengths
    assert {"command", "environment", "cpu_seconds"} <= set(record)
