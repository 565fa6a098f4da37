"""The study of beams: what is recorded is what the searches return, and is read back as it was."""

import hashlib
import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from transformer.data.corpora import load_corpus
from transformer.data.parallel import Split
from transformer.inference.pretrained import locate_pretrained
from transformer.inference.translator import Translator
from transformer.lab.search.study import (
    RECORD,
    BeamStudy,
    recorded_study,
    search_name,
    write_study,
)
from transformer.lab.search.trace import log_probabilities

ROOT = Path(__file__).resolve().parents[3]
SEARCHES = [(0.0, "gnmt"), (0.6, "gnmt"), (0.6, "fairseq")]


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location(
        "record_searches", ROOT / "tools" / "record_searches.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def translator():
    torch.set_num_threads(1)
    return Translator.from_pretrained("tatoeba-en-de")


@pytest.fixture(scope="module")
def split():
    test = load_corpus("tatoeba-en-de").test
    rows = [22, 3, 717, 8]  # of 22 and 717, the penalty changes the winner
    return Split([test.source[i] for i in rows], [test.target[i] for i in rows])


@pytest.fixture(scope="module")
def small(tool, translator, split):
    return BeamStudy(tool.study_searches(translator, split, (1, 4), widest=16))


# ------------------------------------------------------------------ by hand


def by_hand():
    record = dict(
        sentences=[[["a b", 3, -1.0], ["a", 2, -0.5]], [["", 1, -2.0]]],
        choices={"1 0.0 gnmt safe": [0, 0], "exact 0.0 gnmt safe": [1, 0]},
        steps={"1 0.0 gnmt safe": 2.5},
        proven=[1, 0],
        reference=[-0.75, -3.0],
        empty=[-4.0, -2.0],
    )
    return BeamStudy(record)


def test_a_search_chooses_from_the_translations_of_its_sentence():
    study = by_hand()
    assert len(study) == 2
    assert study.searches() == ["1 0.0 gnmt safe", "exact 0.0 gnmt safe"]
    assert study.translations(1) == ["a b", ""] and study.translations("exact") == ["a", ""]
    assert study.lengths(1).tolist() == [3, 1]
    assert study.log_probabilities("exact").tolist() == [-0.5, -2.0]
    assert study.search_errors(1).tolist() == [True, False]
    assert study.proven().tolist() == [True, False]
    assert study.steps(1) == 2.5
    assert study.references.tolist() == [-0.75, -3.0] and study.empty.tolist() == [-4.0, -2.0]
    with pytest.raises(KeyError):
        study.translations(2)


def test_a_study_is_read_as_it_was_written(tmp_path):
    study = by_hand()
    path = write_study(tmp_path / "study.json", study.record)
    assert recorded_study(path) == study
    assert json.loads(path.read_text(encoding="utf-8")) == study.record
    assert len(path.read_text(encoding="utf-8").splitlines()) == len(study.record) + 2
    path.write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match=r"study\.json"):
        recorded_study(path)
    with pytest.raises(FileNotFoundError):
        recorded_study(tmp_path / "none.json")


# ------------------------------------------------------------------ the tool


@pytest.mark.parametrize("beam_size", [1, 4])
@pytest.mark.parametrize("alpha, penalty", SEARCHES)
def test_the_tool_records_what_the_translator_says(
    small, translator, split, beam_size, alpha, penalty
):
    said = translator.translate(split.source, beam_size, alpha, penalty=penalty)
    assert small.translations(beam_size, alpha, penalty) == said


def test_the_tool_records_penalties_that_matter(small):
    plain, gnmt = (small.translations(4, alpha) for alpha in (0.0, 0.6))
    assert [a != b for a, b in zip(plain, gnmt, strict=True)] == [True, False, True, False]
    assert (small.lengths(4, 0.6) >= small.lengths(4)).all()


def test_the_tool_records_the_models_opinions(small, translator, split):
    source = translator._pad([translator._encode(text, "text") for text in split.source])
    for texts, recorded in ((split.target, small.references), ([""] * 4, small.empty)):
        ids = [translator.tokenizer.encode(text) for text in texts]
        ours = log_probabilities(translator.model, source, ids).numpy()
        np.testing.assert_allclose(recorded, ours, atol=1e-3)
    for search in ((1,), (4, 0.6), ("exact",)):
        ids = [translator.tokenizer.encode(text) for text in small.translations(*search)]
        ours = log_probabilities(translator.model, source, ids).numpy()
        np.testing.assert_allclose(small.log_probabilities(*search), ours, atol=1e-3)
        assert small.lengths(*search).tolist() == [len(row) + 1 for row in ids]


def test_the_rules_to_stop_differ_in_steps_and_never_gain(small):
    def score(stop):
        lengths = small.lengths(4, 0.6, "gnmt", stop)
        return small.log_probabilities(4, 0.6, "gnmt", stop) / ((5 + lengths) / 6) ** 0.6

    for stop in ("full", "leading"):
        assert (score(stop) <= score("safe") + 1e-4).all()
    assert small.steps(4, 0.6) != small.steps(4, 0.6, "gnmt", "leading")


# ------------------------------------------------------------------ the record that ships


def test_the_record_is_of_the_weights_and_the_test_set_that_ship(split):
    study = recorded_study()
    weights = (locate_pretrained("tatoeba-en-de") / "model.safetensors").read_bytes()
    assert study.record["model"]["sha256"] == hashlib.sha256(weights).hexdigest()
    corpus = load_corpus("tatoeba-en-de")
    assert study.record["corpus"]["sha256"] == corpus.checksum
    assert len(study) == len(corpus.test.source) == len(study.references) == len(study.empty)
    assert study.record["command"] == "python tools/record_searches.py"
    assert RECORD.stat().st_size < 500_000


def test_the_record_agrees_with_searches_made_now(translator):
    study, test = recorded_study(), load_corpus("tatoeba-en-de").test
    rows = range(0, 400, 20)
    texts = [test.source[i] for i in rows]
    for beam_size, alpha, penalty in ((1, 0.0, "gnmt"), (4, 0.6, "gnmt"), (4, 0.6, "fairseq")):
        recorded = study.translations(beam_size, alpha, penalty)
        said = translator.translate(texts, beam_size, alpha, penalty=penalty)
        # Another machine rounds differently, and may break a near tie the other way.
        same = sum(recorded[i] == text for i, text in zip(rows, said, strict=True))
        assert same >= 0.95 * len(rows)


def test_no_search_finds_more_than_the_exact_one_where_it_is_proven():
    study = recorded_study()
    proven, best = study.proven(), study.log_probabilities("exact")
    assert 0.85 < proven.mean() <= 1
    for name in study.searches():
        beam_size, alpha, penalty, stop = name.split()
        if beam_size != "exact":
            search = int(beam_size), float(alpha), penalty, stop
            found = study.log_probabilities(*search)
            ended = study.lengths(*search) < 50  # one without its EOS lacks a factor
            assert (found <= best + 1e-3)[proven & ended].all(), name
    for other in (study.references, study.empty):
        assert (other <= best + 1e-3)[proven].all()


def test_names():
    assert search_name(4, 1, "gnmt", "safe") == "4 1.0 gnmt safe"
