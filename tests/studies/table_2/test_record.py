"""Runs are recorded once per recipe, resumed where they stopped, and best first."""

import sys
from dataclasses import replace

import pytest

from transformer.baselines import RecurrentConfig
from transformer.data.corpora.download import DownloadError
from transformer.recipes import cards
from transformer.recipes.cards import CARDS, on_card
from transformer.recipes.presets import PRESETS, get_preset
from transformer.recipes.record import read_record, read_translations, write_record
from transformer.recipes.translation import TranslationRun
from transformer_book.speed import throughput
from transformer_book.studies.recording import same_recipe
from transformer_book.studies.translation import record
from transformer_book.studies.translation.recorded import RUNS


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


def test_two_processes_take_a_step_in_half_as_many_batches():
    preset = PRESETS["multi30k-tiny"]
    record = dict(preset=preset.with_changes(accumulate=1).to_dict())
    assert not same_recipe(record, preset)
    assert same_recipe(record | dict(environment=dict(hardware=dict(devices=2))), preset)


def test_the_records_of_the_package_are_of_their_presets():
    for path in RUNS.glob("*.json"):
        name, _, seed = path.stem.rpartition("-seed")
        found = read_record(path)["preset"]
        if name in PRESETS:
            preset = PRESETS[name].with_changes(seed=int(seed))
            assert record.is_recorded(preset), path
        else:  # a preset with changes, which the name adds
            assert found["name"] in PRESETS and name.startswith(f"{found['name']}-"), path
            assert found["training"]["seed"] == int(seed), path


def test_a_run_on_another_card_is_recorded_once(tmp_path, monkeypatch):
    preset = get_preset("mixture-base")
    made = on_card(preset, CARDS["h100"])
    write_record(tmp_path / f"{record.run_name(preset)}.json", dict(preset=made.to_dict()))
    monkeypatch.setattr(record, "RUNS", tmp_path)
    assert on_card(preset, CARDS["t4"]).training.precision != made.training.precision
    assert record.is_recorded(on_card(preset, CARDS["t4"]))
    assert not record.is_recorded(on_card(preset.with_changes(max_steps=9), CARDS["t4"]))


def test_the_plan_of_a_gpu_begins_with_what_needs_no_text(tmp_path):
    (tmp_path / "data").mkdir()
    items = record.plan(True, (), [1, 2], tmp_path, tmp_path / "data")
    names = [item.name for item in items]
    speed = len(record.SPEED)
    assert names[:speed] == [f"{name}-throughput" for name in record.SPEED]
    assert all(item.corpus is None for item in items[:speed])
    # Then what is on this machine: Tatoeba comes with the package.
    downloads = [item.corpus is not None for item in items]
    assert downloads == sorted(downloads)
    here = names[speed : downloads.index(True)] if any(downloads) else names
    assert "tatoeba-large-seed2" in here
    assert len(names) == speed + 2 * len(record.GPU) == len(set(names))
    on_cpu = [item.name for item in record.plan(False, (), [1], tmp_path, None)]
    assert sorted(on_cpu) == sorted(f"{name}-seed1" for name in record.CPU)
    asked = record.plan(True, ["smoke"], [3], tmp_path, None)
    assert [item.name for item in asked] == ["smoke-seed3"]


def test_everything_is_fitted_to_the_card(tmp_path, monkeypatch):
    t4, measured = CARDS["t4"], []
    monkeypatch.setattr(cards, "this_card", lambda: t4)
    monkeypatch.setattr(record, "record_throughput", measured.append)
    for item in record.plan(True, (), [1], tmp_path, None)[: len(record.SPEED)]:
        assert item.record()
    assert measured == [on_card(PRESETS[name], t4) for name in record.SPEED]
    (run,) = record.planned(["mixture-base"], [1], tmp_path)
    assert run == on_card(PRESETS["mixture-base"].with_changes(seed=1), t4)
    # A run that began on another card keeps its precision.
    begun = {tmp_path / record.run_name(run): dict(precision="bf16")}
    monkeypatch.setattr(cards, "settings_of", lambda folder: begun.get(folder, {}))
    assert record.planned(["mixture-base"], [1], tmp_path)[0].training.precision == "bf16"


def test_what_cannot_be_downloaded_is_named_and_the_rest_is_recorded(monkeypatch, capsys):
    done, asked = [], []

    def load_corpus(name, data_dir):
        asked.append(name)
        raise DownloadError(f"cannot download {name}: no network")

    def item(name, corpus, error=None, state="missing"):
        def do():
            done.append(name)
            if error:
                raise error
            return True

        return record.Item(name, corpus, lambda: state, do)

    monkeypatch.setattr(record, "load_corpus", load_corpus)
    items = [item("a", None, RuntimeError("CUDA out of\nmemory")), item("b", "news"),
             item("c", "news"), item("d", None), item("e", "news", state="recorded"),
             item("f", None, ImportError("sacremoses is missing"))]  # fmt: skip
    assert record.run_items(items, None, float("inf")) == 1
    assert done == ["a", "d", "f"] and asked == ["news"], "tried once"
    said = capsys.readouterr().err
    assert said.endswith(
        "not recorded:\na: failed, CUDA out of memory\n"
        "b: skipped, cannot download news: no network\n"
        "c: skipped, cannot download news: no network\n"
        "f: failed, sacremoses is missing\n"
    )
    assert record.run_items([item("d", None), item("e", "news", state="recorded")], None, 1e12) == 0
    assert record.run_items([item("g", None)], None, until=0.0) == 1
    assert capsys.readouterr().err == "not recorded:\ng: no time left\n" and "g" not in done
    stopped = record.Item("f", None, lambda: "missing", lambda: False)
    assert record.run_items([stopped], None, float("inf")) == 130


def test_a_signal_in_a_measurement_ends_the_plan(preset, monkeypatch):
    monkeypatch.setattr(throughput, "PAIRS", 300)
    monkeypatch.setattr(throughput.Trainer, "fit", lambda trainer: False)
    done = []
    other = record.Item("other", None, lambda: "missing", lambda: done.append(1) or True)
    assert record.run_items([record._speed(preset), other], None, float("inf")) == 130
    assert not done


@pytest.mark.parametrize(
    "error, reason",
    [
        (RuntimeError("The NVIDIA driver on your system is too old.\nUpdate it."), "is too old"),
        (AssertionError("Torch not compiled with CUDA enabled"), "not compiled with CUDA"),
    ],
)
def test_gpu_fails_in_one_line_where_there_is_none(monkeypatch, capsys, error, reason):
    def ones(*_, device):
        assert device == "cuda"
        raise error

    monkeypatch.setattr(record.torch, "ones", ones)
    monkeypatch.setattr(sys, "argv", ["record", "--gpu"])
    monkeypatch.setattr(record, "plan", None)  # not called
    assert record.main() == 2
    said = capsys.readouterr()
    assert said.err.count("\n") == 1 and reason in said.err and said.out == ""
    # Without the flag the plan is a CPU's, and says so.
    monkeypatch.setattr(record, "plan", lambda gpu, *_: [] if gpu is False else None)
    monkeypatch.setattr(sys, "argv", ["record"])
    assert record.main() == 0 and "planning for a CPU" in capsys.readouterr().err


def test_a_run_is_recorded_and_resumed(tmp_path, preset, corpus, monkeypatch):
    monkeypatch.setattr(record, "RUNS", tmp_path / "records")
    monkeypatch.setattr(
        record,
        "TranslationRun",
        lambda p, folder, *_, **__: TranslationRun(p, folder, corpus=corpus),
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
