"""The page on scale: its figures are worked out, and worked out rightly."""

from pathlib import Path

import pytest

from transformer.book.markers import fill_in, marked
from transformer.book.scale import figures
from transformer.lab.speed import scale
from transformer.recipes.presets import get_preset

PAGE = Path(__file__).parents[2] / "book" / "scale.md"


def test_the_page_holds_what_is_worked_out_and_all_of_it():
    page, values = PAGE.read_text(encoding="utf-8"), figures()
    assert fill_in(page, "figure", values) == page
    assert set(marked(page, "figure")) == set(values)


def test_the_paper_s_runs_on_paper():
    base, big, *_ = scale.planned_runs()
    assert base.target_tokens == 100_000 * 25_000 and big.target_tokens == 300_000 * 25_000
    # Six operations for each weight and token that passes it: half of each side's layers, roughly.
    weights = 512 * 37_000 + 44e6  # the output projection and all layers
    assert base.flops == pytest.approx(6 * 2.5e9 * weights, rel=0.15)
    # The paper's eight P100 for 12 hours could have done 3.3e18 (Table 2).
    assert 0.2 < base.flops / 3.3e18 < 0.4
    one, eight = base.seconds("H100"), base.seconds("H100", 8)
    assert one == pytest.approx(8 * eight) == pytest.approx(base.flops / 0.35 / 989e12)
    assert base.seconds("A100") == pytest.approx(one * 989 / 312)


def test_a_text_is_taken_in_proportion():
    found = dict(
        text_bytes=800,
        learn=dict(cpu_seconds=1.0),
        encode=dict(cpu_seconds=3.0, source_tokens=150, target_tokens=50),
        start_again=dict(cpu_seconds=0.5, peak_bytes=1400, idle_bytes=1000),
    )
    record = dict(pairs={"9": {}, "10": found})
    text = scale.planned_text(100, record)  # 5,200 tokens, 26 times as many, for 10 times the pairs
    assert (text.text_bytes, text.prepare_seconds) == (26 * 800, pytest.approx(26 * 4.0))
    assert (text.plan_bytes, text.start_seconds) == (10 * 400, pytest.approx(5.0))
    assert text.cache_bytes == 5200 * 2 + 100 * 32


def test_what_is_shared_out_is_an_eighth_of_weights_gradients_and_moments():
    count, alone, whole = scale.memory(get_preset("wmt14-big"))
    assert whole == 12 * count
    _, shared, _ = scale.memory(get_preset("wmt14-big"), 8)
    assert alone - shared == 14 * count
    assert scale.large_preset().model.d_model == 2048


def test_what_the_page_says_of_the_measurement():
    sizes = scale.read_record(scale.RECORD)["pairs"]
    small, large = (sizes[key] for key in sorted(sizes, key=int))
    grown = large["encode"]["peak_bytes"] - small["encode"]["peak_bytes"]
    assert grown < 50 * max(map(int, sizes)) < large["text_bytes"] / 2
    laps = large["start"]["laps"]
    assert laps.pop("epoch") < 2 and sum(laps.values()) < 0.5
