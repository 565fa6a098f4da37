"""The records that the pages draw from: all that are there, whole, and in a fixed order."""

import json

import pytest

from transformer.experiments.record import RUNS, recorded_runs, write_record


def test_every_record_under_its_name_in_order(tmp_path):
    for name in ("wmt14-base", "multi30k-tiny", "tatoeba-small"):
        write_record(tmp_path / f"{name}.json", dict(steps=len(name)))
    (tmp_path / "notes.txt").write_text("not a record")
    (tmp_path / ".half-written.json.12.tmp").write_text("{")
    runs = recorded_runs(tmp_path)
    assert list(runs) == ["multi30k-tiny", "tatoeba-small", "wmt14-base"]
    assert runs["tatoeba-small"] == dict(steps=13)


def test_without_a_folder_there_are_no_runs(tmp_path):
    assert recorded_runs(tmp_path / "none") == {}


@pytest.mark.parametrize("text", ['{"steps": ', "[1, 2]"])
def test_a_damaged_record_is_named(tmp_path, text):
    (tmp_path / "broken.json").write_text(text)
    with pytest.raises(ValueError, match="broken.json is not a recorded run"):
        recorded_runs(tmp_path)


def test_by_default_the_records_of_the_package():
    runs = recorded_runs()
    assert list(runs) == sorted(path.stem for path in RUNS.glob("*.json"))
    for name, record in runs.items():
        for field in ("preset", "seed", "corpus", "environment", "minutes", "metrics", "curve"):
            assert record.get(field) is not None, f"{name} has no {field}"
        assert all(metric["signature"] for metric in record["metrics"])
        # On the pages nobody should find the folders of somebody's machine.
        assert "/home/" not in json.dumps(record) and "/tmp/" not in json.dumps(record)
