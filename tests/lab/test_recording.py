"""What every recorder shares."""

from transformer.lab.recording import Recording
from transformer.recipes.record import read_record


def test_measurements_are_rounded_and_settings_are_kept(tmp_path):
    path = tmp_path / "record.json"
    recording = Recording(path, "module", digits=3, training=dict(adam_eps=1e-9))
    recording.content["runs"] = [dict(loss=1.23456)]
    recording.save("one run")
    again = Recording(path, "module", digits=3, training=dict(adam_eps=1e-9))
    again.save("nothing new")
    written = read_record(path)
    assert written["training"] == dict(adam_eps=1e-9)
    assert written["runs"] == [dict(loss=1.235)]
