"""The paper's largest recipe from one command to a record, on a stand-in for WMT14.

The model is shrunk and the text is made up; corpus loader, half precision, accumulation,
averaging, search and scores are those of the full run.
"""

import sys
import types

import pytest
import sacrebleu
from typer.testing import CliRunner

from tests.data.fake_datasets import Rows
from tests.recipes.conftest import GERMAN_NOUNS, NOUNS
from transformer.cli import app
from transformer.inference.metrics import compound_split_bleu
from transformer.inference.translator import Translator
from transformer.recipes.record import read_record, read_translations

SMALL = dict(
    vocab_size=300, d_model=32, d_ff=64, num_heads=4, num_layers=2, dropout=0.0, max_steps=120,
    warmup_steps=30, learning_rate_factor=0.15, log_every=5, validate_every=60, save_every=5,
    score_pairs=4, compile=False, batch_tokens=400,
)  # fmt: skip


@pytest.fixture
def wmt14(monkeypatch, tmp_path):
    """The module `datasets` with a small WMT14 in it; returns what was asked of it."""
    asked = []

    def sentence(i):
        j = i * 5 % 8
        english = f"the {NOUNS[i % 8]} sees {i % 7 + 2} of the {NOUNS[j]}-{NOUNS[i % 3]}s"
        first, second, third = (GERMAN_NOUNS[k] for k in (i % 8, j, i % 3))
        german = f"{first} sieht {i % 7 + 2} mal {second}-{third}"
        return {"en": english, "de": german}

    def load_dataset(path, config, revision):
        asked.append((path, config, revision))
        ranges = dict(train=range(400), validation=range(400, 410), test=range(410, 420))
        return {name: Rows(map(sentence, numbers)) for name, numbers in ranges.items()}

    module = types.ModuleType("datasets")
    module.load_dataset = load_dataset
    monkeypatch.setitem(sys.modules, "datasets", module)
    monkeypatch.delenv("TRANSFORMER_DATA_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return asked


def test_from_one_command_to_a_record(tmp_path, wmt14):
    words = ["train", "wmt14-big", "-o", str(tmp_path / "run")]
    for name, value in SMALL.items():
        words += ["--set", f"{name}={value}"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert [asked[:2] for asked in wmt14] == [("wmt/wmt14", "de-en")]
    # The training text was not held in memory: its ids are mapped from here.
    assert len(list(tmp_path.glob("cache/transformer-book/tokens/*/header.json"))) == 1
    # The needs come first.
    assert "needs of wmt14-big, " in result.stdout.splitlines()[0]
    assert result.stdout.index("disk: ") < result.stdout.index("400 training pairs")

    record = read_record(tmp_path / "run/run.json")
    assert record["preset"]["training"]["precision"] == "bf16"
    assert record["preset"]["training"]["accumulate"] == 2
    assert record["corpus"]["pairs"] == {"train": 400, "validation": 10, "test": 10}
    assert record["steps"] == 120 and len(record["averaged"]) == 20
    losses = [line["loss"] for line in record["curve"] if "loss" in line]
    assert losses[-1] < 0.5 * losses[0]
    searches = {(m["weights"], m["beam_size"], m["alpha"]) for m in record["metrics"]}
    assert searches == {(w, beam, 0.6) for w in ("last", "averaged") for beam in (1, 4)}

    # The recorded score is that of the stored translations.
    rows = sys.modules["datasets"].load_dataset("", "", "")["test"]
    references = [row["de"] for row in rows]
    translations = read_translations(tmp_path / "run/translations.json.gz")["test"]
    (recorded,) = (
        m["score"]
        for m in record["metrics"]
        if (m["weights"], m["beam_size"], m["name"]) == ("averaged", 4, "BLEU")
    )
    assert sacrebleu.corpus_bleu(translations, [references]).score == pytest.approx(recorded)
    assert recorded > 40  # it has learned to translate these
    assert compound_split_bleu(translations, references, "de").score > 40
    translator = Translator.from_pretrained(tmp_path / "run/model")
    assert translator([row["en"] for row in rows]) == translations
