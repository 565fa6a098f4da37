"""What is to be recorded, in which order, and what a record or a folder says about it."""

from dataclasses import replace

import pytest
import torch
from run_plan import PLAN, Entry, Item, State, choose, difference, items_of, state_of
from toy_recording import TOY, TOYS, write_data

from transformer.baselines import RecurrentConfig
from transformer.lab.table_2.recorded import RUNS
from transformer.recipes.presets import PRESETS, Preset
from transformer.recipes.record import read_record, write_record
from transformer.recipes.translation import TranslationRun


@pytest.fixture(autouse=True)
def toys(monkeypatch):
    """The toy presets of the processes exist in this one too, and only here."""
    for name, preset in TOYS.items():
        monkeypatch.setitem(PRESETS, name, preset)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_data(tmp_path_factory.mktemp("data"))


def names(items):
    return [item.name for item in items]


def test_every_planned_preset_exists_and_no_run_is_planned_twice():
    runs = [(entry.preset, seed) for entry in PLAN for seed in entry.seeds]
    assert len(runs) == len(set(runs))
    assert {entry.preset for entry in PLAN} <= set(PRESETS)


def test_every_preset_but_smoke_is_planned():
    assert set(PRESETS) - {entry.preset for entry in PLAN} <= {"smoke", *TOYS}


def test_the_first_seed_of_all_comes_before_the_second_of_any():
    entries = [Entry("smoke", seeds=()), Entry("smoke"), Entry("tatoeba-small", seeds=(5, 6)),
               Entry("wmt14-base", seeds=())]  # fmt: skip
    assert names(items_of(entries)) == [
        "smoke-throughput", "smoke-seed1", "tatoeba-small-seed5", "smoke-seed2",
        "tatoeba-small-seed6", "smoke-seed3", "wmt14-base-throughput",
    ]  # fmt: skip


def test_the_plan_of_a_gpu_answers_every_question_first():
    planned = names(choose([], None, gpu=True))
    assert planned[0] == "mixture-base-throughput" and planned[1] == "multi30k-tiny-seed1"
    seeds = [name[-1] for name in planned if "-seed" in name]
    assert seeds == sorted(seeds)
    assert not any(name.endswith("-cpu-seed1") for name in planned)
    assert not any(name.startswith("wmt14") and "seed" in name for name in planned)
    assert set(names(choose([], [2], gpu=True))) >= {"multi30k-tiny-seed2"}
    assert "multi30k-tiny-seed1" not in names(choose([], [2], gpu=True))


def test_the_plan_without_a_gpu_has_what_a_cpu_can_do():
    planned = names(choose([], None, gpu=False))
    assert planned[0] == "multi30k-tiny-cpu-seed1" and "tatoeba-small-seed1" in planned
    assert not any("throughput" in name or "wmt14" in name for name in planned)


def test_what_is_asked_for_by_name():
    assert names(choose(["multi30k-tiny"], None, True)) == [
        f"multi30k-tiny-seed{i}" for i in (1, 2, 3)
    ]
    assert names(choose(["wmt14-base"], None, True)) == [
        "wmt14-base-throughput",
        "wmt14-base-seed1",
    ]
    assert names(choose(["wmt14-base"], None, False)) == ["wmt14-base-seed1"]
    assert names(choose(["smoke"], [7, 9], False)) == ["smoke-seed7", "smoke-seed9"]
    asked = ["tatoeba-small-seed4", "wmt14-big-throughput", "smoke"]
    assert names(choose(asked, [1], False)) == [*asked[:2], "smoke-seed1"]
    assert choose(["smoke-seed1", "smoke"], [1], False) == [Item("smoke", 1)]


@pytest.mark.parametrize("name", ["smok", "smok-seed1", "smoke-seed", "smoke-seedx"])
def test_unknown_names(name):
    with pytest.raises(ValueError, match="unknown preset|no run is called"):
        choose([name], None, True)


def test_an_item_is_its_name():
    for item in (Item("multi30k-tiny-cpu", 2), Item("mixture-base", None)):
        assert Item.named(item.name) == item
    assert Item("smoke", 5).preset() == PRESETS["smoke"].with_changes(seed=5)
    assert Item("smoke", None).alone and not Item("smoke", 5).alone


class TestDifference:
    def test_none(self):
        assert difference(dict(preset=TOY.to_dict(), commit="another"), TOY) == ""
        recurrent = Preset("toy", RecurrentConfig(50))
        record = dict(preset=recurrent.to_dict(), architecture="recurrent")
        assert difference(record, recurrent) == ""

    @pytest.mark.parametrize(
        "changes, why",
        [
            (dict(beam_size=7), "beam_size: 2 recorded, 7 now"),
            (dict(d_ff=32), "model.d_ff: 16 recorded, 32 now"),
            (dict(max_steps=31), "training.max_steps: 30 recorded, 31 now"),
            (dict(corpus="multi30k-en-de"), "corpus: 'tatoeba-en-de' recorded"),
        ],
    )
    def test_of_every_part(self, changes, why):
        assert difference(dict(preset=TOY.to_dict()), TOY.with_changes(**changes)).startswith(why)

    def test_a_field_that_did_not_exist_had_its_default(self):
        old = TOY.to_dict()
        del old["penalty"], old["training"]["accumulate"]
        assert difference(dict(preset=old), TOY) == ""
        assert "penalty: nothing recorded" in difference(
            dict(preset=old), TOY.with_changes(penalty="fairseq")
        )
        assert "accumulate" in difference(dict(preset=old), TOY.with_changes(accumulate=2))

    def test_another_architecture(self):
        other = replace(TOY, model=RecurrentConfig(300, d_model=16))
        why = "architecture: transformer recorded, recurrent now"
        assert difference(dict(preset=TOY.to_dict()), other) == why
        assert difference(dict(preset=other.to_dict(), architecture="recurrent"), TOY)

    def test_the_records_of_the_package_can_be_judged(self):
        for path in RUNS.glob("*-seed*.json"):
            item = Item.named(path.stem)
            assert isinstance(difference(read_record(path), item.preset()), str)


class TestState:
    @pytest.fixture
    def item(self):
        return Item("toy", 3)

    def test_from_missing_to_recorded(self, tmp_path, data, item):
        folder, record = tmp_path / "toy-seed3", tmp_path / "toy-seed3.json"
        preset = item.preset()
        assert state_of(item, folder, record) == State("missing")
        run = TranslationRun(preset, folder, data)
        assert state_of(item, folder, record) == State("missing")  # nothing saved yet
        run.trainer.config = replace(run.trainer.config, max_steps=7)
        assert run.train()
        assert state_of(item, folder, record) == State("unfinished", 7)
        assert str(state_of(item, folder, record)) == "unfinished at step 7"
        write_record(record, dict(preset=preset.with_changes(alpha=1.0).to_dict()))
        why = "alpha: 1.0 recorded, 0.6 now"
        assert state_of(item, folder, record) == State("stale", 7, why)
        assert str(state_of(item, folder, record)) == f"stale ({why}) at step 7"
        write_record(record, dict(preset=preset.to_dict()))
        assert state_of(item, folder, record) == State("recorded")

    @pytest.mark.parametrize(
        "changes, goes_on",
        [
            (dict(), True),
            (dict(beam_size=9, log_every=3, keep_last=1), True),  # nothing that was trained
            (dict(max_steps=7), True),
            (dict(max_steps=6), False),  # it has gone past its end
            (dict(d_ff=32), False),
            (dict(label_smoothing=0.0), False),
        ],
    )
    def test_what_a_folder_is_good_for(self, tmp_path, data, item, monkeypatch, changes, goes_on):
        run = TranslationRun(item.preset().with_changes(max_steps=7), tmp_path / "run", data)
        run.train()
        monkeypatch.setitem(PRESETS, "toy", PRESETS["toy"].with_changes(**changes))
        step = state_of(item, tmp_path / "run", tmp_path / "none.json").step
        assert step == (7 if goes_on else None)

    def test_a_damaged_state_is_none(self, tmp_path, item):
        (tmp_path / "state.pt").write_bytes(b"not a state")
        assert state_of(item, tmp_path, tmp_path / "none.json") == State("missing")
        torch.save(dict(config={}), tmp_path / "state.pt")
        assert state_of(item, tmp_path, tmp_path / "none.json") == State("missing")
