"""Runs are recorded once per recipe, resumed where they stopped, and best first."""

import signal
import sys
from dataclasses import replace

import pytest

from transformer.baselines import RecurrentConfig
from transformer.lab.recording import same_recipe
from transformer.lab.table_2 import record
from transformer.lab.table_2.recorded import RUNS
from transformer.recipes.presets import PRESETS
from transformer.recipes.record import read_record, read_translations
from transformer.recipes.translation import TranslationRun


def test_every_preset_but_smoke_and_the_papers_is_planned():
    assert {*record.GPU, *record.CPU} == {n for n in PRESETS if n != "smoke" and "wmt" not in n}


def test_the_first_seed_of_all_presets_comes_before_the_second():
    names = [record.run_name(preset) for preset in record.planned(["smoke", "wmt14-base"], [1, 2])]
    assert names == ["smoke-seed1", "wmt14-base-seed1", "smoke-seed2", "wmt14-base-seed2"]


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


def test_a_run_is_stopped_resumed_and_recorded_once(tmp_path, preset, corpus, monkeypatch, capsys):
    """The command as a user gives it, with a corpus and a preset that take a second."""
    runs, records = tmp_path / "runs", tmp_path / "records"
    words = ["record", "smoke", "--seeds", "4", "--output", str(runs), "--records", str(records)]
    monkeypatch.setattr(sys, "argv", words)
    monkeypatch.setitem(PRESETS, "smoke", preset)
    monkeypatch.setattr(
        record, "TranslationRun", lambda p, folder, _: TranslationRun(p, folder, corpus=corpus)
    )
    finish = TranslationRun.train

    def stopped(run):
        take_step = run.trainer._train_step

        def stepping(*arguments):
            if run.trainer.step == 5:
                signal.raise_signal(signal.SIGINT)
            return take_step(*arguments)

        run.trainer._train_step = stepping
        return finish(run)

    monkeypatch.setattr(TranslationRun, "train", stopped)
    assert record.main() == 130 and not records.exists()
    monkeypatch.setattr(TranslationRun, "train", finish)
    monkeypatch.setattr(sys, "argv", [*words, "--list"])
    record.main()
    assert "step 6 of 8" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", words)
    assert record.main() == 0
    assert "going on from step 6" in capsys.readouterr().out
    found = read_record(records / "smoke-seed4.json")
    assert found == read_record(runs / "smoke-seed4/run.json") and found["seed"] == 4
    assert read_translations(records / "smoke-seed4.translations.json.gz").keys() == {"test"}
    before = (records / "smoke-seed4.json").stat().st_mtime_ns
    record.is_recorded(preset.with_changes(seed=4), records)
    assert (records / "smoke-seed4.json").stat().st_mtime_ns == before
    monkeypatch.setattr(record, "gpu_works", lambda: False)
    monkeypatch.setattr(sys, "argv", [*words, "--gpu"])
    with pytest.raises(SystemExit):
        record.main()
    assert "can use no GPU" in capsys.readouterr().err
