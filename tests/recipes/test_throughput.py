"""A rate is measured on the real loop, counted on real tokens, and turned into hours rightly."""

import itertools
import json
import time

import pytest
import torch

from transformer.baselines import RecurrentConfig
from transformer.data.batching import TokenBatches, encode_pairs
from transformer.data.corpora import load_corpus
from transformer.data.tokenizer import Tokenizer
from transformer.recipes import throughput
from transformer.recipes.cost import training_flops
from transformer.recipes.presets import Preset
from transformer.recipes.throughput import (
    MEASUREMENTS,
    Throughput,
    batch_flops,
    matrix_rate,
    measure_throughput,
    preset_batches,
    random_batches,
)
from transformer.training.stream import step_batches


@pytest.fixture(scope="module")
def batches(preset):
    return random_batches(preset, mean_length=10, count=300)


@pytest.fixture(scope="module")
def measured(preset, batches):
    return measure_throughput(preset, batches, "noise", blocks=3, steps=2, warmup=1)


def test_tokens_and_operations_are_those_of_the_timed_steps(preset, batches, measured):
    stream = step_batches(batches)
    timed = [next(stream)[0][0] for _ in range(8)][2:]  # without the block to warm up
    tokens = [int((batch.labels != 0).sum()) for batch in timed]
    assert measured.steps == 6
    assert measured.target_tokens_per_step == pytest.approx(sum(tokens) / 6)
    sources = sum(int((batch.source != 0).sum()) for batch in timed)
    assert measured.source_tokens_per_step == pytest.approx(sources / 6)
    flops = sum(batch_flops(preset.model, batch) for batch in timed)
    assert measured.flops_per_step == pytest.approx(flops / 6)
    assert 0 < measured.padding < 0.5


def test_the_time_is_that_of_the_steps(preset, batches, monkeypatch):
    """On a clock that an optimiser step moves by a second and nothing else does."""
    now = itertools.count()
    clock = [0.0]
    monkeypatch.setattr("transformer.training.trainer.time.perf_counter", lambda: clock[0])
    step = torch.optim.Adam.step

    def slow(self, *rest, **more):
        # The blocks take 1, 1, 4 and 2 seconds a step: the first one is to warm up.
        clock[0] += (1, 1, 4, 2)[next(now) // 2]
        return step(self, *rest, **more)

    monkeypatch.setattr(torch.optim.Adam, "step", slow)
    monkeypatch.setattr(throughput, "matrix_rate", lambda *_: 1e6)
    found = measure_throughput(preset, batches, blocks=3, steps=2, warmup=1)
    assert found.seconds_per_step == pytest.approx(2.0)  # the median of 1, 4 and 2
    assert found.tokens_per_second == pytest.approx(found.target_tokens_per_step / 2)
    assert found.utilisation == pytest.approx(found.flops_per_step / 2 / 1e6)
    assert found.hours(100_000) == pytest.approx(200_000 / 3600)


def test_accumulated_batches_are_one_step(preset, batches):
    single = measure_throughput(preset, batches, blocks=1, steps=2, warmup=1)
    double = measure_throughput(
        preset.with_changes(accumulate=2), batches, blocks=1, steps=2, warmup=1
    )
    for name in ("target_tokens_per_step", "flops_per_step"):
        assert getattr(double, name) > 1.5 * getattr(single, name)


def test_operations_of_a_batch_are_those_of_its_sentences(preset, batches):
    batch = batches.batch(batches.epoch(0)[0])
    sides = ((ids != 0).sum(dim=1).tolist() for ids in (batch.source, batch.labels))
    assert batch_flops(preset.model, batch) == pytest.approx(
        sum(training_flops(preset.model, s, t) for s, t in zip(*sides, strict=True))
    )


def test_the_record_can_be_written_and_holds_the_paper_s_hours(measured):
    record = json.loads(json.dumps(measured.to_record()))
    assert record["kind"] == "throughput" and record["text"] == "noise"
    assert record["paper_hours"] == {"100000": 12.0, "300000": 84.0}
    assert record["hours"]["300000"] == pytest.approx(3 * record["hours"]["100000"])
    assert 0 < record["utilisation"] < 1
    assert record["preset"]["model"]["d_model"] == 16 and record["environment"]["libraries"]
    assert len(record["target_tokens_per_second_of_blocks"]) == 3
    assert "12 h on eight P100" in str(measured)


def test_a_model_without_a_count_has_a_rate_and_no_utilisation():
    preset = Preset("toy", RecurrentConfig(50, d_model=16)).with_changes(
        batch_tokens=200, max_length=20, warmup_steps=2
    )
    found = measure_throughput(
        preset, random_batches(preset, 8, count=100), blocks=1, steps=1, warmup=1
    )
    assert found.tokens_per_second > 0
    assert found.to_record()["architecture"] == "recurrent"
    assert found.flops_per_step is None and found.utilisation is None
    assert json.dumps(found.to_record()) and "target tokens/s" in str(found)


def test_bf16_runs(preset, batches):
    found = measure_throughput(
        preset.with_changes(precision="bf16"), batches, blocks=1, steps=1, warmup=1
    )
    assert found.to_record()["precision"] == "bf16" and found.tokens_per_second > 0


def test_the_matrix_rate_is_the_best_of_all(monkeypatch):
    """Three products of 2 n^3 operations, on a clock that says how long they took."""
    monkeypatch.setattr(time, "perf_counter", iter([0, 8, 10, 14, 20, 30]).__next__)
    assert matrix_rate("cpu", sizes=(16,), repeats=3) == 3 * 2 * 16**3 / 4


def test_matrix_rate_of_this_machine():
    assert 1e8 < matrix_rate("cpu", sizes=(256,), repeats=2) < 1e14
    with pytest.raises(ValueError, match="sizes and repeats must not be empty"):
        matrix_rate("cpu", sizes=())


def test_random_batches_are_like_those_of_text(preset):
    wide = preset.with_changes(batch_tokens=2000, max_length=60)
    pairs = random_batches(wide, mean_length=12, count=4000).pairs
    source, target = pairs.source.lengths(), pairs.target.lengths()
    assert len(pairs) == 4000 and abs(source.mean() - 12) < 0.5 and abs(target.mean() - 12) < 0.5
    assert source.min() >= 2 and 30 < source.max() <= 60
    assert pairs.target[7][-1] == preset.model.eos_id and min(pairs.target[7]) >= 2
    assert random_batches(wide, batch_tokens=100, count=9).batch_tokens == 100


def test_preset_batches_are_those_of_a_run(preset):
    small = preset.with_changes(train_pairs=300, max_length=20)
    train = load_corpus("tatoeba-en-de").train
    tokenizer = Tokenizer.train([*train.source[:300], *train.target[:300]], 300)
    pairs = encode_pairs(tokenizer, type(train)(train.source[:300], train.target[:300]))
    expected = TokenBatches(pairs, small.training.batch_tokens, small.training.seed, 20)
    found = preset_batches(small)
    assert (found.pairs.source.ids == expected.pairs.source.ids).all()
    assert [list(rows) for rows in found.epoch(0)] == [list(rows) for rows in expected.epoch(0)]


@pytest.mark.parametrize("name", ["blocks", "steps", "warmup"])
def test_nothing_is_measured_on_nothing(preset, batches, name):
    with pytest.raises(ValueError, match=f"{name} must be at least 1, got 0"):
        measure_throughput(preset, batches, **{name: 0})
    with pytest.raises(ValueError, match="mean_length must be at least 2"):
        random_batches(preset, mean_length=1)


def test_utilisation_by_hand():
    found = Throughput(
        preset={"name": "x"}, architecture="", text="", device="", steps=1,
        seconds_per_step=0.5, blocks=[], target_tokens_per_step=100.0,
        source_tokens_per_step=90.0, padding=0.0, flops_per_step=4e12, matrix_rate=1e13,
        peak_memory=None,
    )  # fmt: skip
    assert found.utilisation == pytest.approx(0.8) and found.tokens_per_second == 200
    assert MEASUREMENTS.name == "measurements"
