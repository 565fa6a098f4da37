"""The weights that come with the package: there, small, whole, and of use."""

import json

from transformer.inference.pretrained import SHIPPED_FOLDER, shipped_names
from transformer.inference.translator import Translator

FOLDER = SHIPPED_FOLDER / "tatoeba-en-de"


def test_it_is_found_by_name_and_under_20_megabytes():
    assert "tatoeba-en-de" in shipped_names()
    assert (FOLDER / "model.safetensors").stat().st_size < 20_000_000


def test_it_translates_offline(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    translator = Translator.from_pretrained("tatoeba-en-de")
    wanted = {
        "Where is the train station?": "Wo ist der Bahnhof?",
        "I have nothing to do with the crime.": "Ich habe mit dem Verbrechen nichts zu tun.",
    }
    assert translator(list(wanted)) == list(wanted.values())


def test_its_card_quotes_its_record():
    record = json.loads(
        (SHIPPED_FOLDER.parent / "experiments/runs/tatoeba-small-seed1.json").read_text()
    )
    card = (FOLDER / "README.md").read_text(encoding="utf-8")
    scores = [m["score"] for m in record["metrics"] if m["weights"] == "averaged"]
    assert scores and all(f"{score:.2f}" in card for score in scores)
    assert f"{record['parameters']:,}" in card
