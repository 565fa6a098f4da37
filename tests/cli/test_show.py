"""``transformer corpora`` and ``transformer info``."""

import re
import shutil

from tests.cli.conftest import fails, run
from transformer.data.corpora import corpus_names
from transformer.recipes.presets import PRESETS
from transformer.recipes.record import read_record


def test_corpora_lists_every_corpus_once(monkeypatch, tmp_path):
    monkeypatch.delenv("TRANSFORMER_DATA_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    rows = [re.split(r"  +", line) for line in run("corpora").stdout.splitlines()]
    assert [row[0] for row in rows[1:]] == corpus_names()
    table = {row[0]: row[1:] for row in rows}
    assert table["tatoeba-en-de"][:3] == ["en -> de", "yes", "part of the package"]
    assert table["multi30k-en-de"][1:3] == ["no", "download"]


def test_info_of_this_installation_and_of_a_preset():
    shown = run("info").stdout
    for name in ("python", "torch", "device", *PRESETS):
        assert name in shown
    shown = run("info", "wmt14-base").stdout
    assert re.search(r"^parameters +63,082,496 ", shown, re.M)
    assert re.search(r"^d_model +512$", shown, re.M)
    for name in ("multi30k-recurrent", "multi30k-convolutional"):
        assert re.search(r"^parameters +\d,\d{3},\d{3} ", run("info", name).stdout, re.M)


def test_info_of_a_model(trained, tmp_path):
    count = read_record(trained[0] / "run.json")["parameters"]
    for name in ("", "model", "checkpoints/best.safetensors"):
        shown = run("info", trained[0] / name).stdout
        assert re.search(rf"^parameters +{count:,} ", shown, re.M)
        assert re.search(r"^vocab_size +300$", shown, re.M)
    folder = shutil.copytree(trained[0] / "checkpoints", tmp_path / "run/checkpoints").parent
    shutil.copy(trained[0] / "config.json", folder)
    shutil.copy(trained[0] / "tokenizer.json", folder)
    assert "using its newest checkpoint, step-00000006\n" in run("info", folder).stderr
    saying = "no trained model 'wmt-base': .* nor a preset \\(smoke, .*wmt14-base, wmt14-big\\)"
    fails("info", "wmt-base", saying=saying)
