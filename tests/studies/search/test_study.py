"""The record of searches is read as it was written, and agrees with searches made now."""

import json

import pytest
import torch

from transformer.data.corpora import load_corpus
from transformer.data.corpora.download import sha256
from transformer.inference.translator import Translator
from transformer.saving.locate import locate
from transformer_book.studies.decoding.study import BeamStudy, recorded_study, write_study

STUDY = BeamStudy(
    dict(
        sentences=[[["a b", 3, -1.0], ["a", 2, -0.5]], [["", 1, -2.0]]],
        choices={"1 0.0 gnmt safe": [0, 0], "exact 0.0 gnmt safe": [1, 0]},
        steps={"1 0.0 gnmt safe": 2.5},
        proven=[1, 0],
        reference=[-0.75, -3.0],
        empty=[-4.0, -2.0],
    )
)


def test_a_search_chooses_from_the_translations_of_its_sentence():
    assert len(STUDY) == 2
    assert STUDY.searches() == ["1 0.0 gnmt safe", "exact 0.0 gnmt safe"]
    assert STUDY.translations(1) == ["a b", ""] and STUDY.translations("exact") == ["a", ""]
    assert STUDY.lengths(1, 0, "gnmt", "safe").tolist() == [3, 1]
    assert STUDY.log_probabilities("exact").tolist() == [-0.5, -2.0]
    assert STUDY.proven().tolist() == [True, False]
    assert STUDY.steps(1) == 2.5
    with pytest.raises(KeyError):
        STUDY.translations(2)


def test_a_study_is_read_as_it_was_written(tmp_path):
    path = write_study(tmp_path / "study.json", STUDY.record)
    assert recorded_study(path) == STUDY
    assert json.loads(path.read_text(encoding="utf-8")) == STUDY.record


def test_the_record_is_of_the_weights_and_the_test_set_that_ship():
    study, corpus = recorded_study(), load_corpus("tatoeba-en-de")
    weights = locate("tatoeba-en-de").folder / "model.safetensors"
    assert study.record["model"]["sha256"] == sha256(weights)
    assert study.record["corpus"]["sha256"] == corpus.checksum
    assert len(study) == len(corpus.test.source) == len(study.references) == len(study.empty)


@pytest.mark.parametrize(
    "search", [(1, 0.0, "gnmt"), (4, 0.6, "gnmt"), (4, 0.6, "fairseq")], ids=str
)
def test_the_record_agrees_with_searches_made_now(search):
    torch.set_num_threads(1)
    translator = Translator.from_pretrained("tatoeba-en-de")
    recorded, test = recorded_study().translations(*search), load_corpus("tatoeba-en-de").test
    rows = range(0, 400, 20)
    beam_size, alpha, penalty = search
    said = translator.translate(
        [test.source[i] for i in rows], beam_size=beam_size, alpha=alpha, penalty=penalty
    )
    # Another machine rounds differently, and may break a near tie the other way.
    assert sum(recorded[i] == text for i, text in zip(rows, said, strict=True)) >= 19
