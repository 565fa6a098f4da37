"""A finished run goes into the package with all that belongs to it."""

import sys

import pytest
import torch
from safetensors.torch import load_file

from transformer.recipes.presets import PRESETS
from transformer.recipes.translation import TranslationRun
from transformer.saving.locate import SHIPPED_FOLDER
from transformer_book.studies.translation import counts, ship
from transformer_book.studies.translation.counts import read_counts
from transformer_book.studies.translation.recorded import recorded_runs


def test_a_run_and_its_second_part_are_shipped(corpus, preset, tmp_path, monkeypatch):
    records, package = tmp_path / "records", tmp_path / "package"
    monkeypatch.setattr(ship, "RUNS", records)
    monkeypatch.setattr(ship, "SHIPPED_FOLDER", package)
    monkeypatch.setattr(counts, "load_corpus", lambda *_: corpus)
    monkeypatch.setitem(PRESETS, "smoke", preset.with_changes(corpus=corpus.name))
    monkeypatch.chdir(tmp_path)

    def shipped(recipe, name):
        run = TranslationRun(recipe, f"runs/{name}", corpus=corpus, progress=False)
        assert run.train()
        run.finish()
        monkeypatch.setattr(sys, "argv", ["ship", f"runs/{name}", "small-en-de"])
        ship.main()
        return (package / "small-en-de/README.md").read_text(encoding="utf-8")

    one = preset.with_changes(corpus=corpus.name, seed=1)
    card = shipped(one, "smoke-seed1")
    assert "Trained with the preset `smoke`: 8 steps" in card and "not measured" in card
    assert "In brackets: the same recipe with seed 1." in shipped(
        one.with_changes(seed=2), "smoke-seed2"
    )
    longer = one.starting_from("runs/smoke-seed1/model").with_changes(max_steps=5)
    card = shipped(longer, "smoke-longer")
    assert "5 further steps from a first run of 8 steps" in card and "Together: 13 steps" in card
    assert "runs/" not in card and "not measured" in card
    runs = recorded_runs(records)
    assert list(runs) == ["smoke-13-steps-seed1", "smoke-seed1", "smoke-seed2"]
    assert runs["smoke-13-steps-seed1"]["first_run"] == runs["smoke-seed1"]
    assert all(read_counts(name, records).keys() == {"test BLEU", "test chrF2"} for name in runs)
    weights = load_file(package / "small-en-de/model.safetensors").values()
    assert {tensor.dtype for tensor in weights} == {torch.float16}


def test_a_run_from_a_model_without_a_record_is_named_by_its_own_steps():
    record = dict(
        preset=preset_of("smoke", init_from="elsewhere/model", max_steps=61),
        corpus=dict(name=PRESETS["smoke"].corpus, languages=["en", "de"]),
        seed=4,
    )
    assert ship.record_name(ship.with_first_run(record, {})) == "smoke-61-steps-seed4"


def test_in_other_languages_the_steps_of_a_continued_run_are_named():
    first = dict(
        preset=preset_of("smoke", init_from=None, max_steps=70),
        corpus=dict(name="other", languages=["en", "fr"]), steps=70, seed=4,
    )  # fmt: skip
    runs = {ship.record_name(first): first}
    assert list(runs) == ["smoke-en-fr-seed4"]
    start = "runs/smoke-en-fr-seed4/model"
    second = first | dict(preset=preset_of("smoke", start, max_steps=30), steps=30)
    assert ship.record_name(ship.with_first_run(second, runs)) == "smoke-en-fr-100-steps-seed4"


def preset_of(name, init_from, **changes):
    return PRESETS[name].with_changes(**changes).to_dict() | dict(init_from=init_from)


@pytest.mark.parametrize(
    ("name", "run"),
    [
        ("tatoeba-en-de", "tatoeba-small-14000-steps-seed1"),
        ("tatoeba-en-fr", "tatoeba-small-en-fr-20000-steps-seed1"),
    ],
)
def test_the_cards_in_the_package_follow_from_the_records(name, run):
    """A run of its own prints its command; one that continued another has no command to print."""
    record = recorded_runs()[run]
    card = ship.card(name, record)
    assert card.strip() == (SHIPPED_FOLDER / name / "README.md").read_text(encoding="utf-8").strip()
    assert (record["command"] in card) == ("first_run" not in record)
