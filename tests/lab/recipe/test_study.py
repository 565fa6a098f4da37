"""The small study of the recipe: what a run measures, and that its record is whole."""

import json

import pytest
import record_recipe

from transformer.data.corpora import load_corpus
from transformer.inference.translator import Translator
from transformer.lab.recipe.study import (
    RECORD,
    SEEDS,
    SETTINGS,
    VARIANTS,
    first_pairs,
    recorded_study,
    run_variant,
)
from transformer.lab.recipe.training import make_model, mean_weights, quality, short_text, train
from transformer.model.config import TransformerConfig
from transformer.recipes.presets import Preset
from transformer.recipes.translation import evaluate
from transformer.training.config import TrainingConfig

SHORT = Preset(
    "short",
    TransformerConfig(300, d_model=16, d_ff=16, num_heads=2, num_layers=1, dropout=0.1),
    TrainingConfig(
        max_steps=60, batch_tokens=300, warmup_steps=20, validate_every=20, save_every=4,
        keep_last=3,
    ),
    train_pairs=60,
)  # fmt: skip


@pytest.fixture(scope="module")
def text(corpus):
    return short_text(corpus, SHORT, longest=7)


def test_a_run_measures_what_it_says(text):
    found = run_variant(SHORT, text)
    model = make_model(SHORT)
    steps = (20, 40, 52, 56, 60)
    training = train(model, text.train, SHORT.training, keep=steps)
    weights = training.snapshots
    assert found["losses"] == pytest.approx(training.losses.reshape(3, 20).mean(axis=1).tolist())
    for line, step in zip(found["curve"], (20, 40, 60), strict=True):
        expected = quality(model, text.held_out, weights[step])
        assert line == dict(step=step) | vars(expected)
    expected = quality(model, first_pairs(text.train, len(text.held_out)))
    assert found["train"] == vars(expected) != found["curve"][-1]

    means = {"last": weights[60], "averaged": mean_weights([weights[s] for s in (52, 56, 60)])}
    for name, mean in means.items():
        expected = vars(quality(model, text.held_out, mean))
        assert {key: found[name][key] for key in expected} == pytest.approx(expected)
        for score in evaluate(Translator(model, text.tokenizer), text.text, beam_size=1):
            assert found[name][score.name] == score.score
            assert found["signatures"][score.name] == score.signature


def test_the_first_pairs(text):
    few = first_pairs(text.train, 7)
    assert len(few) == len(few.target) == 7
    assert [few.source[i] for i in range(7)] == [text.train.source[i] for i in range(7)]
    assert few.target[6] == text.train.target[6]
    assert len(first_pairs(text.train, 1000)) == 60


def test_settings_differ_in_the_pairs_and_the_steps_only():
    few, many = (SETTINGS[name].to_dict() for name in ("few pairs", "many pairs"))
    assert few.pop("train_pairs") < many.pop("train_pairs")
    assert few["training"].pop("max_steps") < many["training"].pop("max_steps")
    assert few == many


def covered(record: dict, values: dict) -> bool:
    """Whether all that was recorded is still so; fields that are new since then do not matter."""
    return all(
        covered(value, values[name]) if isinstance(value, dict) else values[name] == value
        for name, value in record.items()
    )


def test_the_record_is_whole_and_of_these_settings():
    record = recorded_study()
    runs = {(r["setting"], r["variant"], r["seed"]): r for r in record["runs"]}
    planned = {(s, v, seed) for s in VARIANTS for v in VARIANTS[s] for seed in SEEDS}
    assert runs.keys() == planned and len(record["runs"]) == len(planned)
    for (setting, variant, _), run in runs.items():
        assert run["changes"] == VARIANTS[setting][variant]
        assert 0 < run["last"]["accuracy"] < 1 < run["last"]["perplexity"] < 1000
    for name, preset in record["settings"].items():
        # As JSON, which has lists and no tuples.
        assert covered(preset, json.loads(json.dumps(SETTINGS[name].to_dict()))), name
    corpus = load_corpus(record["corpus"]["name"])
    assert record["corpus"]["sha256"] == corpus.checksum
    assert not any(folder in RECORD.read_text() for folder in ("/home/", "/tmp/"))


def test_a_recording_goes_on_where_it_was_stopped(corpus, tmp_path, monkeypatch, capsys):
    called = []

    def stub(preset, text):
        called.append((preset.training.seed, preset.model.dropout, len(text.train)))
        if len(called) == 3:
            raise KeyboardInterrupt
        return dict(last=dict(accuracy=0.5))

    monkeypatch.setattr(record_recipe, "run_variant", stub)
    monkeypatch.setattr(record_recipe, "SETTINGS", {"one": SHORT})
    monkeypatch.setattr(record_recipe, "VARIANTS", {"one": {"a": {}, "b": dict(dropout=0.5)}})
    monkeypatch.setattr(record_recipe, "SEEDS", (0, 1))
    monkeypatch.setattr(record_recipe, "SPLIT", "test")
    monkeypatch.setattr(record_recipe, "load_corpus", lambda name: corpus)
    monkeypatch.setattr(record_recipe, "short_text", lambda *a, **k: short_text(*a, **k, longest=7))
    path = tmp_path / "record.json"
    monkeypatch.setattr("sys.argv", ["record_recipe.py", "--output", str(path)])
    with pytest.raises(KeyboardInterrupt):
        record_recipe.main()
    assert len(recorded_study(path)["runs"]) == 2
    record_recipe.main()
    assert called == [(0, 0.1, 60), (0, 0.5, 60), (1, 0.1, 60), (1, 0.1, 60), (1, 0.5, 60)]
    record = recorded_study(path)
    assert [(run["variant"], run["seed"]) for run in record["runs"]] == [
        ("a", 0), ("b", 0), ("a", 1), ("b", 1),
    ]  # fmt: skip
    assert record["runs"][3]["changes"] == dict(dropout=0.5)
    assert record["corpus"]["sha256"] == corpus.checksum and record["environment"]
    assert capsys.readouterr().out.count("s of CPU") == 4
