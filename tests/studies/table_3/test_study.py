"""Table 3 at our size: the paper's rows at the paper's ratios, measured as in the paper."""

import math
import sys
from dataclasses import replace

import pytest
import torch
from sacrebleu.metrics import BLEU, CHRF
from safetensors.torch import load_file

from transformer.data.batching import TokenBatches, encode_pairs
from transformer.data.corpora import load_corpus
from transformer.data.tokenizer import Tokenizer
from transformer.inference.translator import Translator
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer.recipes.record import describe_environment, read_record
from transformer.training.loss import perplexity
from transformer_book.statistics import spearman, spearman_interval
from transformer_book.studies.choices import record, study
from transformer_book.studies.choices.study import ROWS, SCALES, Scale, row_preset, run_row
from transformer_book.studies.left_out import choices
from transformer_book.studies.recording import stored_texts, texts_file
from transformer_book.studies.training import ShortText

SMALL = SCALES["table-3-small"]


def test_the_printed_column_of_parameters_is_that_of_the_configurations():
    """The filled cells match the count with the vocabulary that fits them."""
    for row, printed in ROWS.items():
        if printed.parameters is None:
            continue
        place = (row,) if row in ("base", "big") else (row[0], int(row[1]))
        config = TransformerConfig.table3(*place, vocab_size=40_960)
        with torch.device("meta"):
            millions = Transformer(config).num_parameters() / 1e6
        # "big" is printed as 213, and no vocabulary meets both it and base.
        assert abs(millions - printed.parameters) < (6 if row == "big" else 0.6), row


def keys(config):
    return config.d_model // config.num_heads if config.d_k is None else config.d_k


@pytest.mark.parametrize("scale", SCALES.values(), ids=SCALES)
def test_ratios_to_base_are_the_papers(scale):
    paper, ours = TransformerConfig.base(), scale.base.model
    for row in ROWS:
        place = (row,) if row in ("base", "big") else (row[0], int(row[1]))
        theirs, mine = TransformerConfig.table3(*place), row_preset(scale, row).model
        for name in ("d_model", "d_ff", "num_heads", "num_layers"):
            ratio = getattr(theirs, name) / getattr(paper, name)
            assert getattr(mine, name) == ratio * getattr(ours, name), (row, name)
        assert keys(mine) * keys(paper) == keys(theirs) * keys(ours), row
        for name in ("dropout", "positions", "norm", "activation"):
            assert getattr(mine, name) == getattr(theirs, name), (row, name)
        assert mine.vocab_size == ours.vocab_size


def test_what_no_field_of_the_model_holds():
    smoothing = {row: row_preset(SMALL, row).training.label_smoothing for row in ROWS}
    assert smoothing.pop("D3") == 0.0 and smoothing.pop("D4") == 0.2
    assert set(smoothing.values()) == {0.1}
    steps = {row: row_preset(SMALL, row).training.max_steps for row in ROWS}
    assert steps.pop("big") == 3 * SMALL.base.training.max_steps
    assert set(steps.values()) == {SMALL.base.training.max_steps}
    equal = SCALES["table-3-settled"]
    assert {row_preset(equal, row).training.max_steps for row in ROWS} == {5000}


@pytest.fixture(scope="module")
def tiny(corpus):
    base = SMALL.base.with_changes(
        vocab_size=300, d_model=32, d_ff=32, max_steps=4, batch_tokens=200, save_every=2,
        validate_every=2, beam_size=2,
    )  # fmt: skip
    return Scale("tiny", base, None, "test", seeds=(1, 2))


@pytest.fixture(scope="module")
def text(corpus):
    both = [*corpus.train.source, *corpus.train.target]
    tokenizer = Tokenizer.train(both, 300)
    pairs = [encode_pairs(tokenizer, part) for part in (corpus.train, corpus.test)]
    return ShortText(tokenizer, *pairs, corpus.test)


def test_a_row_is_measured_as_the_table_is(tiny, text, tmp_path):
    """The last weights, no averaging; perplexity without smoothing; the beam for BLEU."""
    preset = row_preset(tiny, "D4").with_changes(seed=3)
    found = run_row(preset, text, tmp_path / "run", progress=False)
    weights = next((tmp_path / "run" / "checkpoints").glob("step-*4.safetensors"))
    model = Transformer(preset.model)
    model.load_state_dict(load_file(weights), strict=False)
    model.eval()
    assert found["perplexity"] == pytest.approx(perplexity(model, TokenBatches(text.held_out, 64)))
    assert found["curve"][-1] == (4, pytest.approx(found["perplexity"]))
    assert [step for step, _ in found["curve"]] == [2, 4]
    written = Translator(model, text.tokenizer).translate(text.text.source, beam_size=2, alpha=0.6)
    assert found["translations"] == written
    assert found["BLEU"] == pytest.approx(BLEU().corpus_score(written, [text.text.target]).score)
    assert found["parameters"] == model.num_parameters() and math.isfinite(found["chrF2"])
    again = run_row(preset, text, tmp_path / "again", progress=False)
    assert {**found, "minutes": 0} == {**again, "minutes": 0}
    other = run_row(preset.with_changes(seed=4), text, tmp_path / "other", progress=False)
    assert other["perplexity"] != found["perplexity"]


def recounted(path, scale, corpus):
    """Count the scores again from the stored translations; whether that was all of the runs."""
    runs = {f"{r['row']}, seed {r['seed']}": r for r in read_record(path)["runs"]}
    words = scale.longest or math.inf
    split = corpus.splits[scale.split]
    short = [pair for pair in split if max(len(side.split()) for side in pair) <= words]
    references = [target for _, target in short[: scale.base.test_pairs]]
    texts = stored_texts(path)
    for name, found in texts.items():
        for key, metric in (("BLEU", BLEU()), ("chrF2", CHRF())):
            again = metric.corpus_score(found, [references]).score
            assert runs[name][key] == pytest.approx(again)
    return texts.keys() == runs.keys()


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
    assert [(r["row"], r["seed"]) for r in first] == [("base", 1), ("A1", 1)]
    both = run(2, "two")
    assert [(r["row"], r["seed"]) for r in both] == [(r, s) for r in ("base", "A1") for s in (1, 2)]
    assert both[::2] == first
    assert [r["environment"]["code"] for r in both] == ["one", "two"] * 2
    assert run(1, "three") == both  # nothing was missing
    assert recounted(output, scale, corpus)


OLD = {"table-3-small", "choices-small"}  # some of their runs may have no translations
RECORDS = {scale.record: scale for scale in SCALES.values()} | {choices.RECORD: choices.SCALE}


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_the_recorded_scores_follow_from_the_translations(path):
    if not path.exists() or (path.stem in OLD and not texts_file(path).exists()):
        pytest.skip("not recorded, or before translations were kept")
    scale = RECORDS[path]
    whole = recounted(path, scale, load_corpus(scale.base.corpus))
    assert whole or path.stem in OLD


def test_rank_correlation():
    x, y = [1, 2, 2, 9], [0.1, 0.5, 0.5, 0.7]
    assert spearman(x, y) == pytest.approx(1) and spearman(x, y[::-1]) == pytest.approx(-1)
    # Ranks 1..5 against 2, 1, 4, 3, 5: 1 - 6 * (1 + 1 + 1 + 1) / (5 * 24)
    assert spearman([10, 20, 30, 40, 50], [2.0, 1.0, 4.0, 3.0, 99.0]) == pytest.approx(0.8)
    assert math.isnan(spearman([1, 1], [1, 2]))
    long = list(range(20))
    low, high = spearman_interval(long, [i + 8 * (i % 2) for i in long])
    assert 0.5 < low < spearman(long, [i + 8 * (i % 2) for i in long]) < high < 1
    with pytest.raises(ValueError):
        spearman([1, 2], [1])
