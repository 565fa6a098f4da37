"""The runs with and without a warm-up differ in nothing else, and the record is complete."""

import numpy as np
import pytest

from transformer.lab.recipe import warm_up
from transformer.lab.recipe.training import held_rate, make_model, quality, short_text, train
from transformer.model.config import TransformerConfig
from transformer.recipes.presets import Preset
from transformer.recipes.record import read_record
from transformer.training.config import TrainingConfig
from transformer.training.schedule import learning_rate

TINY = Preset(
    "tiny",
    TransformerConfig(300, d_model=16, d_ff=16, num_heads=2, num_layers=1, dropout=0.1),
    TrainingConfig(max_steps=6, batch_tokens=300),
    train_pairs=60,
)


@pytest.mark.parametrize("with_it", [False, True])
def test_a_run_reaches_its_peak_and_measures_what_it_says(corpus, monkeypatch, with_it):
    text = short_text(corpus, TINY, longest=7)
    for name, value in dict(PRESET=TINY, WARMUP=3, MEASURED=(2, 6), MOVES=(1, 4)).items():
        monkeypatch.setattr(warm_up, name, value)
    found = warm_up.run(0.02, with_it, 5, text)

    # By hand: a straight climb of three steps or none, then the inverse square root.
    rates = [0.02 * min(1, step / 3 if with_it else 1) for step in (1, 2, 3)]
    rates += [0.02 * (3 / step) ** 0.5 for step in (4, 5, 6)]
    preset = TINY.with_changes(seed=5)
    model = make_model(preset)
    wanted = train(model, text.train, preset.training, lambda step: rates[step - 1], {2, 6})
    scores = [quality(model, text.held_out, wanted.snapshots[step]).perplexity for step in (2, 6)]
    assert found["perplexity"] == pytest.approx(scores, rel=1e-4)
    assert found["moves"] == pytest.approx(wanted.moves[[0, 3]].tolist(), rel=1e-4)
    assert (found["peak"], found["warm_up"], found["seed"]) == (0.02, with_it, 5)


def test_the_record_holds_every_run_in_order():
    runs = read_record(warm_up.RECORD)["runs"]
    assert len(runs) == len(warm_up.PEAKS) * 2 * len(warm_up.SEEDS)
    for peak in warm_up.PEAKS:
        for with_it in (False, True):
            chosen = [r for r in runs if (r["peak"], r["warm_up"]) == (peak, with_it)]
            assert [r["seed"] for r in chosen] == list(warm_up.SEEDS)
            scores = warm_up.perplexities(runs, peak, with_it)
            assert scores.shape == (len(warm_up.SEEDS), len(warm_up.MEASURED))
            assert scores.tolist() == [r["perplexity"] for r in chosen]
            moves = warm_up.moves(runs[::-1], peak, with_it)
            assert moves.tolist() == [r["moves"] for r in chosen]
            assert np.allclose(moves[:, 0], 1, atol=0.02)  # Adam's first step


def test_both_schedules_are_equal_after_the_warm_up():
    for step in (100, 101, 200):
        assert held_rate(step, 64, 100) == learning_rate(step, 64, 100)
    assert held_rate(1, 64, 100) == learning_rate(100, 64, 100) > learning_rate(99, 64, 100)
