"""Table 3 at our size: the paper's ratios, scores as recorded, and fair verdicts."""

import math
import sys
from dataclasses import replace

import pytest

from transformer.model.config import TransformerConfig
from transformer.recipes.record import describe_environment, read_record
from transformer.recipes.table_3 import table_3
from transformer_book.statistics import spearman, spearman_interval
from transformer_book.studies.choices import claims, record, study
from transformer_book.studies.choices.study import ROWS, SCALES, row_preset
from transformer_book.studies.recording import stored_texts


def test_a_gain_is_above_zero_for_the_better_row():
    perplexities = {"base": {1: 4.0, 2: 5.0}, "A1": {2: 10.0, 3: 1.0}}
    assert claims.gains(perplexities, "perplexity", "base", "A1") == pytest.approx([math.log(2)])
    assert claims.gains(perplexities, "BLEU", "base", "A1") == [-5.0]


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_ratios_to_base_are_the_papers(scale):
    def keys(config):
        return config.d_k or config.d_model // config.num_heads

    paper, ours = TransformerConfig.base(), scale.base.model
    for row in ROWS:
        place = (row,) if row in ("base", "big") else (row[0], int(row[1]))
        theirs, mine = table_3(*place), row_preset(scale, row).model
        for name in ("d_model", "d_ff", "num_heads", "num_layers"):
            ratio = getattr(theirs, name) / getattr(paper, name)
            assert getattr(mine, name) == ratio * getattr(ours, name), (row, name)
        assert keys(mine) * keys(paper) == keys(theirs) * keys(ours), row
        for name in ("dropout", "positions", "norm", "activation"):
            assert getattr(mine, name) == getattr(theirs, name), (row, name)
        assert mine.vocab_size == ours.vocab_size


def test_seeds_are_added_one_by_one_at_different_commits(corpus, tmp_path, monkeypatch):
    """The whole command, with a model and a text that train in a second."""
    scale = SCALES["table-3-settled"]
    base = scale.base.with_changes(
        vocab_size=300, d_model=32, d_ff=32, max_steps=2, batch_tokens=200, save_every=1,
        validate_every=2, train_pairs=100, test_pairs=10, beam_size=2,
    )  # fmt: skip
    scale = replace(scale, base=base, rows=("base", "A1"), split="test")
    monkeypatch.setitem(SCALES, scale.name, scale)
    monkeypatch.setattr(study, "load_corpus", lambda *_: corpus)
    monkeypatch.setattr(record, "FOLDER", tmp_path / "runs")
    output = tmp_path / "record.json"

    def run(seed, code):
        environment = describe_environment() | dict(code=code)
        monkeypatch.setattr(record, "describe_environment", lambda: environment)
        words = ["record", "--scale", scale.name, "--seeds", str(seed), "--output", str(output)]
        monkeypatch.setattr(sys, "argv", words)
        record.main()
        return read_record(output)["runs"]

    first = run(1, "one")
    both = run(2, "two")
    assert [(r["row"], r["seed"]) for r in both] == [(r, s) for r in ("base", "A1") for s in (1, 2)]
    assert both[::2] == first
    assert [r["environment"]["code"] for r in both] == ["one", "two"] * 2
    assert run(1, "three") == both  # nothing was missing
    assert stored_texts(output).keys() == {f"{r['row']}, seed {r['seed']}" for r in both}


def test_rank_correlation():
    x, y = [1, 2, 2, 9], [0.1, 0.5, 0.5, 0.7]
    assert spearman(x, y) == pytest.approx(1) and spearman(x, y[::-1]) == pytest.approx(-1)
    # Ranks 1..5 against 2, 1, 4, 3, 5: 1 - 6 * (1 + 1 + 1 + 1) / (5 * 24)
    assert spearman([10, 20, 30, 40, 50], [2.0, 1.0, 4.0, 3.0, 99.0]) == pytest.approx(0.8)
    assert math.isnan(spearman([1, 1], [1, 2]))
    long = list(range(20))
    low, high = spearman_interval(long, [i + 8 * (i % 2) for i in long])
    assert 0.5 < low < spearman(long, [i + 8 * (i % 2) for i in long]) < high < 1
