"""The toy translator: each part can be taken out, and the record holds what the chapters say."""

import pytest
import torch

from transformer import minimal
from transformer.data import toy
from transformer_book.studies.one_page import study
from transformer_book.toy_translator import runs_of, trained, translate, weights_at_pronoun, without


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setitem(study.TRAINING, "steps", 2)
    lines, test = toy.corpus(training=400, test=8)
    monkeypatch.setattr(toy, "corpus", lambda seed: (lines, test))


@pytest.mark.parametrize("part", [part for part in study.WITHOUT if part != "nothing"])
def test_a_part_that_is_taken_out_changes_the_model_and_is_back_afterwards(part, short):
    before = {name: getattr(minimal, name) for name in vars(minimal)}
    whole, cut = study.run("nothing", 3), study.run(part, 3)
    assert cut["loss"] != whole["loss"]
    assert {name: getattr(minimal, name) for name in vars(minimal)} == before


def test_the_record_has_every_part_with_several_seeds():
    assert [run["seed"] for run in runs_of("nothing")] == list(study.SEEDS)
    for part in study.WITHOUT.keys() - {"nothing"}:
        assert [run["seed"] for run in runs_of(part)] == list(study.SEEDS_OF_A_PART)
    with pytest.raises(ValueError, match="without 'luck'"):
        runs_of("luck")


def test_with_nine_seeds_of_ten_the_program_gets_99_of_100_sentences_right():
    exact = sorted(run["exact"] for run in runs_of("nothing"))
    assert exact[0] >= 0.95 and exact[1] >= 0.99


def test_the_table_compares_the_whole_with_what_is_left():
    shown = without("positions")
    assert [row[0] for row in shown.rows] == ["nothing", "positions"]
    assert shown.rows[0][4:] == [runs_of("nothing")[0]["tired"], runs_of("nothing")[0]["wide"]]


def test_the_weights_that_ship_are_of_the_first_model_of_the_record():
    model, first = trained(), runs_of("nothing")[0]
    found = translate(model, [toy.TIRED.english, toy.WIDE.english])
    assert toy.TIRED.is_right(found[0]) and toy.WIDE.is_right(found[1])
    for name, sentence in (("tired", toy.TIRED), ("wide", toy.WIDE)):
        words = [*toy.split(sentence.english), "<eos>"]
        for layer, weights in weights_at_pronoun(model, sentence).items():
            torch.testing.assert_close(weights.sum(dim=1), torch.ones(2))
            for head, row in enumerate(weights):
                word, weight = first["looks"][name][f"{layer}.{head}"]
                if weight > 0.6:  # half precision may change which of two equal ones is larger
                    assert words[row.argmax()] == word


def test_the_pronoun_is_the_word_after_the_conjunction():
    assert study.pronoun("Das Tier überquerte die Straße nicht, weil es zu müde war.") == "es"
    assert study.pronoun("Obwohl sie sehr alt war, sah die Kuh das Feld.") == "sie"
    assert study.pronoun("Das das das weil") == study.pronoun("") == ""
