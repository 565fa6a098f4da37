"""The toy translator: each part can be taken out, and the record holds what the chapters say."""

import pytest

from transformer import minimal
from transformer.data import toy
from transformer_book.studies.one_page import study
from transformer_book.toy_translator import runs_of, trained, translate, without


@pytest.fixture(scope="module")
def short():
    """The study with two steps and eight test sentences, and what the whole program does then."""
    lines, test = toy.corpus(training=400, test=8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(study.TRAINING, "steps", 2)
        patch.setattr(toy, "corpus", lambda seed: (lines, test))
        yield study.run("nothing", 3)


@pytest.mark.parametrize("part", [part for part in study.WITHOUT if part != "nothing"])
def test_a_part_that_is_taken_out_changes_the_model_and_is_back_afterwards(part, short):
    before = {name: getattr(minimal, name) for name in vars(minimal)}
    assert study.run(part, 3)["loss"] != short["loss"]
    assert {name: getattr(minimal, name) for name in vars(minimal)} == before


def test_the_record_has_the_whole_with_every_seed_and_each_part_with_the_first_ones():
    assert [run["seed"] for run in runs_of("nothing")] == list(study.SEEDS)
    for part in study.WITHOUT.keys() - {"nothing"}:
        assert [run["seed"] for run in runs_of(part)] == list(study.SEEDS_OF_A_PART)
    with pytest.raises(ValueError, match="without 'luck'"):
        runs_of("luck")


def test_with_every_seed_the_program_gets_99_of_100_sentences_right():
    assert all(run["exact"] >= 0.99 for run in runs_of("nothing"))


def test_the_table_compares_the_whole_with_what_is_left():
    shown = without("positions")
    assert [row[0] for row in shown.rows] == ["nothing", "positions"]
    assert shown.rows[0][4:] == [runs_of("nothing")[0]["tired"], runs_of("nothing")[0]["wide"]]


def test_the_weights_that_ship_translate_new_sentences_and_look_from_animal_to_street():
    model, (_, test) = trained(), toy.corpus(seed=0)
    found = translate(model, [sentence.english for sentence in test])
    assert sum(map(toy.Sentence.is_right, test, found)) >= 0.99 * len(test)
    looks = study.looks(model, test[:1])
    assert any(
        tired[0] == "animal" and looks["wide"][head][0] == "street"
        for head, tired in looks["tired"].items()
        if head.startswith("decoder")
    )


def test_the_pronoun_is_the_word_after_the_conjunction():
    assert study.pronoun("Das Tier überquerte die Straße nicht, weil es zu müde war.") == "es"
    assert study.pronoun("Obwohl sie sehr alt war, sah die Kuh das Feld.") == "sie"
    assert study.pronoun("Das das das weil") == study.pronoun("") == ""
