"""Runs are recorded once per recipe, resumed where they stopped, and best first."""

from dataclasses import replace

import pytest

from transformer.baselines import RecurrentConfig
from transformer.lab.recording import same_recipe
from transformer.lab.table_2 import record
from transformer.lab.table_2.recorded import RUNS
from transformer.recipes.presets import PRESETS
from transformer.recipes.record import read_record, read_translations
from transformer.recipes.translation import TranslationRun


@pytest.mark.parametrize(
    "changes", [dict(beam_size=7), dict(d_ff=32), dict(max_steps=31), dict(corpus="multi30k-en-de")]
)
def test_a_change_of_any_part_is_another_recipe(changes):
    smoke = PRESETS["smoke"]
    assert same_recipe(dict(preset=smoke.to_dict()), smoke)
    assert not same_recipe(dict(preset=smoke.with_changes(**changes).to_dict()), smoke)


def test_a_field_that_an_old_record_lacks_had_its_default():
    smoke = PRESETS["smoke"]
    old = smoke.to_dict()
    del old["penalty"], old["training"]["accumulate"]
    assert same_recipe(dict(preset=old), smoke)
    assert not same_recipe(dict(preset=old), smoke.with_changes(accumulate=2))
    other = replace(smoke, model=RecurrentConfig(1000))
    assert not same_recipe(dict(preset=other.to_dict(), architecture="recurrent"), smoke)


def test_the_records_of_the_package_are_of_their_presets():
    for path in RUNS.glob("*.json"):
        name, _, seed = path.stem.rpartition("-seed")
        assert record.is_recorded(PRESETS[name].with_changes(seed=int(seed))), path


def test_a_run_is_recorded_and_resumed(tmp_path, preset, corpus, monkeypatch):
    monkeypatch.setattr(record, "RUNS", tmp_path / "records")
    monkeypatch.setattr(
        record, "TranslationRun", lambda p, folder, _: TranslationRun(p, folder, corpus=corpus)
    )
    train = TranslationRun.train
    monkeypatch.setattr(TranslationRun, "train", lambda run: False)  # Ctrl-C
    assert not record.record(preset, tmp_path) and not record.is_recorded(preset)
    monkeypatch.setattr(TranslationRun, "train", train)
    assert record.record(preset, tmp_path)
    name = record.run_name(preset)
    found = read_record(tmp_path / f"records/{name}.json")
    assert found == read_record(tmp_path / f"{name}/run.json")
    translations = read_translations(tmp_path / f"records/{name}.translations.json.gz")
    assert translations.keys() == {"test"}
