"""The runs differ only in their first learning rates, and the record is complete."""

import numpy as np
import pytest

from transformer.model.config import TransformerConfig
from transformer.recipes.presets import Preset
from transformer.recipes.record import read_record
from transformer.training.config import TrainingConfig
from transformer_book.studies.recipe import warm_up
from transformer_book.studies.training import make_model, quality, short_text, train

TINY = Preset(
    "tiny",
    TransformerConfig(300, d_model=16, d_ff=16, num_heads=2, num_layers=1, dropout=0.1),
    TrainingConfig(max_steps=6, batch_tokens=300),
    train_pairs=60,
)


@pytest.mark.parametrize(
    "start, first", [("climb", (1 / 3, 2 / 3, 1)), ("peak", (1, 1, 1)), ("half", (0.5, 0.5, 0.5))]
)
def test_a_run_reaches_its_peak_and_measures_what_it_says(corpus, monkeypatch, start, first):
    text = short_text(corpus, TINY, longest=7)
    for name, value in dict(PRESET=TINY, WARMUP=3, MEASURED=(2, 6), MOVES=(1, 4)).items():
        monkeypatch.setattr(warm_up, name, value)
    found = warm_up.run(0.02, start, 5, text)

    # By hand: three steps of one kind, then the inverse square root.
    rates = [0.02 * share for share in first]
    rates += [0.02 * (3 / step) ** 0.5 for step in (4, 5, 6)]
    preset = TINY.with_changes(seed=5)
    model = make_model(preset)
    wanted = train(model, text.train, preset.training, lambda step: rates[step - 1], {2, 6})
    scores = [quality(model, text.held_out, wanted.snapshots[step]).perplexity for step in (2, 6)]
    assert found["perplexity"] == pytest.approx(scores, rel=1e-4)
    assert found["moves"] == pytest.approx(wanted.moves[[0, 3]].tolist(), rel=1e-4)
    assert (found["peak"], found["start"], found["seed"]) == (0.02, start, 5)


def test_the_record_holds_every_run_in_order():
    runs = read_record(warm_up.RECORD)["runs"]
    assert len(runs) == len(warm_up.PEAKS) * 3 * len(warm_up.SEEDS)
    for peak in warm_up.PEAKS:
        for start in warm_up.STARTS:
            chosen = [r for r in runs if (r["peak"], r["start"]) == (peak, start)]
            assert [r["seed"] for r in chosen] == list(warm_up.SEEDS)
            scores = warm_up.perplexities(runs, peak, start)
            assert scores.shape == (len(warm_up.SEEDS), len(warm_up.MEASURED))
            assert scores.tolist() == [r["perplexity"] for r in chosen]
            moves = warm_up.moves(runs[::-1], peak, start)
            assert moves.tolist() == [r["moves"] for r in chosen]
            assert np.allclose(moves[:, 0], 1, atol=0.02)  # Adam's first step


def test_all_schedules_are_equal_after_the_warm_up():
    def rates(step):
        return [warm_up.rate_of(start, 0.006, step, 64) for start in warm_up.STARTS]

    for step in (101, 150, 200):
        assert len({*rates(step)}) == 1
    assert rates(100) == pytest.approx([0.006, 0.006, 0.003])
    assert sum(rates(step)[0] for step in range(1, 101)) == pytest.approx(
        sum(rates(step)[2] for step in range(1, 101)), rel=0.02
    )
