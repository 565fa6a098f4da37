"""A translation run from text to BLEU: complete, repeatable, and safe to interrupt."""

import gc
import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from sacrebleu.metrics import BLEU

from transformer.baselines import ConvolutionalConfig, RecurrentConfig
from transformer.data.corpora import Corpus, Split
from transformer.inference.metrics import Score
from transformer.inference.translator import Translator
from transformer.recipes import translation
from transformer.recipes.averaging import average_model, last_checkpoints
from transformer.recipes.record import read_record, read_translations
from transformer.recipes.requirements import run_bytes, size
from transformer.recipes.timing import RunTime
from transformer.recipes.translation import TranslationRun, evaluate
from transformer.training.checkpoint import load_weights
from transformer.training.curve import read_curve
from transformer.training.run_folder import FolderInUseError


@pytest.fixture(scope="module")
def finished(tmp_path_factory, preset, corpus):
    run = TranslationRun(preset, tmp_path_factory.mktemp("runs") / "whole", corpus=corpus)
    assert run.train()
    said = []
    return run, run.finish(said.append), said


def numbers(record):
    """What must repeat exactly; times do not."""
    steps = [line for line in record["curve"] if "perplexity" in line]
    return (
        [m["score"] for m in record["metrics"]],
        [(line["step"], line["perplexity"], line["bleu"]) for line in steps],
        record["samples"],
    )


def test_the_record_says_all_that_a_reader_needs(finished, corpus, preset):
    run, record, said = finished
    assert read_record(run.folder / "run.json") == json.loads(json.dumps(record))
    assert record["preset"] == {**preset.to_dict(), "corpus": "small"}
    assert record["seed"] == preset.training.seed
    assert record["corpus"] == {
        "name": "small",
        "languages": ["en", "de"],
        "licence": "free",
        "sha256": corpus.checksum,
        "pairs": {"train": 100, "validation": 12, "test": 12},
    }
    assert record["steps"] == 8 and record["minutes"] >= 0
    assert record["parameters"] == sum(p.numel() for p in run.model.parameters())
    assert record["target_tokens"] == run.trainer.tokens > 0
    assert {"code", "hardware", "python", "libraries"} <= set(record["environment"])
    rows = [(m["split"], m["weights"], m["beam_size"], m["name"]) for m in record["metrics"]]
    assert rows == [
        ("test", weights, beam_size, name)
        for weights in ("last", "averaged")
        for beam_size in (1, 2)
        for name in ("BLEU", "chrF2")
    ]
    for metric in record["metrics"]:
        assert metric["pairs"] == 12 and "version:" in metric["signature"]
    assert len(said) == len(rows) and "BLEU" in said[0]
    assert [s["source"] for s in record["samples"]] == corpus.test.source[:8]


def test_the_curve_has_every_step_and_the_validations(finished):
    curve = finished[1]["curve"]
    losses = {line["step"]: line["loss"] for line in curve if "loss" in line}
    assert list(losses) == list(range(1, 9))
    assert losses[8] < losses[1]
    assert [line["step"] for line in curve if {"perplexity", "bleu"} <= set(line)] == [4, 8]


def test_the_model_folder_translates_as_the_run_does(finished):
    run, record, _ = finished
    loaded = Translator.from_pretrained(run.folder / "model")
    texts = run.corpus.test.source
    assert loaded(texts) == run.translator(texts)
    scores = evaluate(loaded, run.corpus.test, beam_size=2)
    assert [s.score for s in scores] == [m["score"] for m in record["metrics"][-2:]]


def test_a_run_s_folder_is_as_good_as_its_model(finished):
    run = finished[0]
    by_run = Translator.from_pretrained(run.folder)
    assert by_run(["the cat"]) == Translator.from_pretrained(run.folder / "model")(["the cat"])


def test_the_averaged_weights_are_the_mean(finished):
    run, record, _ = finished
    assert record["averaged"] == ["step-00000006", "step-00000008"]
    first, second = (load_weights(path) for path in run.trainer.checkpoints())
    shipped = load_weights(run.folder / "model/model.safetensors")
    assert set(shipped) <= set(first)
    for name, weight in shipped.items():
        mean = (first[name].double() + second[name].double()) / 2
        assert torch.allclose(weight.double(), mean, atol=1e-7), name
    assert any(not torch.equal(first[name], shipped[name]) for name in shipped)


def test_scores_are_of_the_weights_that_they_name(finished, monkeypatch):
    run = finished[0]
    tested = []

    def scores(*_):
        tested.append(run.model.embedding.weight.clone())
        return [Score("BLEU", 0.0, "")]

    monkeypatch.setattr(translation, "_scores", scores)
    rows = [metric["weights"] for metric in run.finish()["metrics"]]
    first, last = (load_weights(p)["embedding.weight"] for p in run.trainer.checkpoints())
    expected = {"last": last, "averaged": (first + last) / 2}
    for row, weight in zip(rows, tested, strict=True):
        torch.testing.assert_close(weight, expected[row])
    assert set(rows) == set(expected)


def test_the_stored_translations_are_those_that_were_scored(finished):
    run, record, _ = finished
    stored = read_translations(run.folder / "translations.json.gz")
    assert list(stored) == ["test"] and len(stored["test"]) == 12
    again = BLEU().corpus_score(stored["test"], [run.corpus.test.target])
    best = record["metrics"][-2]
    assert (best["weights"], best["beam_size"], best["name"]) == ("averaged", 2, "BLEU")
    assert again.score == best["score"]
    assert [s["translation"] for s in record["samples"]] == stored["test"][:8]


def test_the_search_is_the_presets(tmp_path, preset, corpus):
    searches = []
    run = TranslationRun(
        replace(preset, alpha=1.5, penalty="fairseq", beam_size=3).with_changes(max_steps=1),
        tmp_path / "run",
        corpus=corpus,
    )
    run.train()
    translate = run.translator.translate

    def noted(texts, beam_size, **options):
        searches.append((beam_size, options))
        return translate(texts, beam_size, **options)

    run.translator.translate = noted
    metrics = run.finish()["metrics"]
    assert searches == [(beam, dict(alpha=1.5, penalty="fairseq")) for beam in (1, 3, 1, 3)]
    assert all((m["alpha"], m["penalty"]) == (1.5, "fairseq") for m in metrics)


def test_moses_text_is_trained_on_and_scored_as_it_is(tmp_path, preset, make):
    pytest.importorskip("sacremoses")
    run = TranslationRun(
        replace(preset, text="moses-lowercase").with_changes(max_steps=1, vocab_size=290),
        tmp_path / "run",
        corpus=make(mark="!"),
    )
    assert run.corpus.test.source[0].endswith(" !")
    assert run.corpus.test.target == [text.lower() for text in run.corpus.test.target]
    run.train()
    metrics = run.finish()["metrics"]
    assert {
        m["signature"].split("|tok:")[1].split("|")[0] for m in metrics if m["name"] == "BLEU"
    } == {"none"}


BASELINES = {
    "recurrent": RecurrentConfig(300, d_model=16, dropout=0.1),
    "convolutional": ConvolutionalConfig(300, d_model=16, num_layers=2, max_length=64),
}


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_runs_as_the_transformer_does(tmp_path, preset, corpus, name):
    changed = replace(preset, model=BASELINES[name])
    run = TranslationRun(changed, tmp_path / "run", corpus=corpus)
    assert f"model: {name}, " in run.describe()
    assert run.train()
    record = run.finish()
    assert record["architecture"] == name
    assert record["preset"]["model"] == BASELINES[name].to_dict()
    losses = [line["loss"] for line in record["curve"] if "loss" in line]
    assert losses[-1] < losses[0]
    # Its own class reads it back, and the mean of its checkpoints is what was saved.
    model = type(run.model).from_pretrained(run.folder / "model")
    averaged, tokenizer = average_model(last_checkpoints(run.folder, 2))
    texts = corpus.test.source
    assert Translator(model, tokenizer)(texts) == run.translator(texts)
    assert Translator(averaged, tokenizer)(texts) == run.translator(texts)
    with pytest.raises(ValueError, match="does not load"):
        Translator.from_pretrained(run.folder / "model")
    with pytest.raises(ValueError, match="another configuration"):
        TranslationRun(preset, run.folder, corpus=corpus)


def test_a_run_says_what_is_left_of_it_and_what_that_costs(tmp_path, preset, corpus, monkeypatch):
    run = TranslationRun(preset, tmp_path / "run", corpus=corpus)
    said = run.describe(price=4.0, left=RunTime(1800.0, 900.0, 4500.0)).splitlines()
    assert "time: about 2.0 hours, by the steps that were timed here" in said
    assert "cost: about $8.00 at $4.00 an hour (as you said)" in said
    folder = run_bytes(run.model.num_parameters(), preset.training.keep_last)
    assert f"disk: {size(folder)}" in said and any(line.startswith("memory: ") for line in said)
    asked = []

    def estimate(*run):
        asked.append(run)
        return RunTime(10.0, 10.0, 10.0)

    monkeypatch.setattr(translation, "estimate_time", estimate)
    assert "time: about 30 seconds, by" in run.describe()
    assert asked == [(run.preset, run.trainer, run.translator, run.validation, run.tests)]


def test_finishing_twice_gives_the_same_scores(finished):
    run, record, _ = finished
    assert numbers(run.finish()) == numbers(record)


@pytest.mark.parametrize("stop_at", [1, 5])  # before the first checkpoint, and between two
def test_an_interrupted_run_ends_as_if_it_had_never_stopped(
    finished, tmp_path, preset, corpus, stop_at
):
    run = TranslationRun(preset, tmp_path / "run", corpus=corpus)
    take_step = run.trainer._train_step

    def stepping(*arguments):
        if run.trainer.step + 1 == stop_at:
            signal.raise_signal(signal.SIGTERM)
        return take_step(*arguments)

    run.trainer._train_step = stepping
    assert not run.train()
    assert run.trainer.step == stop_at and run.trainer.stopped_by == signal.SIGTERM
    torch.manual_seed(99)  # another process has other random numbers
    again = TranslationRun(preset, tmp_path / "run", corpus=corpus)
    assert f"going on from step {stop_at}" in again.describe()
    assert again.train()
    assert numbers(again.finish()) == numbers(finished[1])


def test_a_run_killed_before_its_first_checkpoint_starts_afresh(tmp_path, preset, corpus, make):
    folder = tmp_path / "run"
    TranslationRun(preset, folder, corpus=make(mark=" indeed"))
    (folder / "curve.jsonl").write_text('{"step": 1, "loss": 9.0}\n{"step": 2, "lo')
    run = TranslationRun(preset.with_changes(max_steps=1), folder, corpus=corpus)
    run.train()
    losses = [line["loss"] for line in read_curve(folder / "curve.jsonl") if "loss" in line]
    assert len(losses) == 1 and losses[0] != 9.0
    stored = (folder / "tokenizer.json").read_text()
    fresh = TranslationRun(preset, tmp_path / "other", corpus=corpus)
    assert stored == (fresh.folder / "tokenizer.json").read_text()


def test_overrides_reach_model_training_and_record(tmp_path, preset, corpus):
    changed = preset.with_changes(
        d_ff=24, label_smoothing=0.0, learning_rate_factor=3.0, warmup_steps=7, max_steps=1
    )
    run = TranslationRun(changed, tmp_path / "run", corpus=corpus)
    assert run.train()
    assert run.model.config.d_ff == 24
    assert next(p for n, p in run.model.named_parameters() if p.shape == (24, 16)) is not None
    assert run.trainer.config.label_smoothing == 0.0
    first = read_curve(run.folder / "curve.jsonl")[0]
    assert first["learning_rate"] == pytest.approx(3.0 * 16**-0.5 * 7**-1.5)
    record = run.finish()
    assert record["preset"]["model"]["d_ff"] == 24
    assert record["preset"]["training"]["warmup_steps"] == 7


def test_max_length_of_training_is_one_that_the_model_takes(preset):
    assert preset.with_changes(max_length=2000).model.max_length == 2000
    assert preset.with_changes(max_length=32).model.max_length == preset.model.max_length


def test_without_a_test_split_validation_is_scored(tmp_path, preset, make):
    run = TranslationRun(
        preset.with_changes(max_steps=1, score_pairs=0), tmp_path, corpus=make(test=False)
    )
    run.train()
    assert {m["split"] for m in run.finish()["metrics"]} == {"validation"}


def test_sentences_too_long_for_the_model_do_not_end_a_run_late(tmp_path, preset, corpus):
    splits = dict(corpus.splits)
    long = "cat " * 40
    splits["test"] = Split([*corpus.test.source, long], [*corpus.test.target, "Katze"])
    splits["validation"] = Split([long, "the cat"], ["Katze", "Katze"])
    small = Corpus("small", "en", "de", "free", splits)
    changed = preset.with_changes(max_steps=1)
    changed = replace(changed, model=replace(changed.model, max_length=30))
    with pytest.warns(UserWarning, match="left out 1 of 13 pairs with more than 30 tokens"):
        run = TranslationRun(changed, tmp_path / "run", corpus=small)
    assert run.train()
    assert {m["pairs"] for m in run.finish()["metrics"]} == {12}


class TestFolders:
    def test_a_folder_with_something_else_is_left_alone(self, finished, tmp_path, preset, corpus):
        (tmp_path / "notes.txt").write_text("mine")
        with pytest.raises(FileExistsError, match=r"holds no training run, but notes\.txt"):
            TranslationRun(preset, tmp_path, corpus=corpus)
        assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]
        with pytest.raises(FileExistsError, match="is a file"):
            TranslationRun(preset, tmp_path / "notes.txt", corpus=corpus)
        # A trained model has a tokenizer.json too; it must not be written over.
        with pytest.raises(FileExistsError, match="holds no training run"):
            TranslationRun(preset, finished[0].folder / "model", corpus=corpus)

    @pytest.mark.parametrize(
        "changes, message",
        [
            (dict(d_ff=32), r"another configuration \(model\.d_ff: 16 there, 32 here\)"),
            (dict(warmup_steps=5), r"warmup_steps: 4 there, 5 here"),
            (dict(vocab_size=301), r"vocab_size: 300 there, 301 here"),
        ],
    )
    def test_a_run_of_another_configuration_is_refused(
        self, finished, preset, corpus, changes, message
    ):
        with pytest.raises(ValueError, match=message):
            TranslationRun(preset.with_changes(**changes), finished[0].folder, corpus=corpus)

    def test_a_run_on_other_text_is_refused(self, finished, preset, make):
        """As many pairs, but not the same."""
        with pytest.raises(ValueError, match="another configuration .text: "):
            TranslationRun(preset, finished[0].folder, corpus=make(mark="!"))

    @pytest.mark.parametrize(
        "changes, message",
        [
            (dict(vocab_size=5000), "vocab_size 5000 is larger than the text supports"),
            (dict(max_length=2), "no pair to batch"),
        ],
    )
    def test_a_run_that_cannot_start_leaves_nothing(
        self, tmp_path, preset, corpus, changes, message
    ):
        with pytest.raises(ValueError, match=message):
            TranslationRun(preset.with_changes(**changes), tmp_path / "run", corpus=corpus)
        assert not (tmp_path / "run").exists()

    def test_a_damaged_state_is_refused(self, tmp_path, preset, corpus):
        run = TranslationRun(preset.with_changes(max_steps=1), tmp_path, corpus=corpus)
        run.train()
        whole = (tmp_path / "state.pt").read_bytes()
        (tmp_path / "state.pt").write_bytes(whole[: len(whole) // 2])
        with pytest.raises(ValueError, match=r"state\.pt is not a whole checkpoint"):
            TranslationRun(preset, tmp_path, corpus=corpus)

    def test_two_runs_in_one_folder(self, tmp_path, preset, corpus, make):
        """The second is refused before it has written anything, be it new or going on."""
        pytest.importorskip("fcntl")  # without locks there is nothing to tell them apart by
        script = (
            "import sys; from pathlib import Path; "
            "from transformer.training.run_folder import claim_folder; "
            "claim = claim_folder(Path(sys.argv[1])); print(flush=True); sys.stdin.read()"
        )
        for steps in (0, 1):
            folder = tmp_path / str(steps)
            run = TranslationRun(preset.with_changes(max_steps=1), folder, corpus=corpus)
            if steps:
                run.train()
            del run
            gc.collect()  # its claim goes with it
            command = [sys.executable, "-c", script, folder]
            environment = dict(os.environ, PYTHONPATH=str(Path(__file__).parents[2]))
            with subprocess.Popen(
                command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            ) as other:
                assert other.stdout.readline() == b"\n"
                before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
                with pytest.raises(FolderInUseError, match=f"process {other.pid} is training in"):
                    mine = make(mark=" indeed") if not steps else corpus
                    TranslationRun(preset.with_changes(max_steps=2), folder, corpus=mine)
                after = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
                assert after == before
                other.stdin.close()

    def test_a_damaged_tokenizer_is_named(self, tmp_path, preset, corpus):
        """Two merges that changed places make a tokenizer as good as any other."""
        run = TranslationRun(preset.with_changes(max_steps=1), tmp_path, corpus=corpus)
        run.train()
        content = json.loads((tmp_path / "tokenizer.json").read_text())
        content["model"]["merges"][:2] = content["model"]["merges"][1::-1]
        (tmp_path / "tokenizer.json").write_text(json.dumps(content))
        with pytest.raises(ValueError, match=r"tokenizer\.json is not as it was saved"):
            TranslationRun(preset.with_changes(max_steps=2), tmp_path, corpus=corpus)
        with pytest.raises(ValueError, match=r"tokenizer\.json is not as it was saved"):
            average_model(last_checkpoints(tmp_path, 1))


class TestAveraging:
    def test_the_last_checkpoints_make_the_model_of_the_run(self, finished):
        run, record, _ = finished
        paths = last_checkpoints(run.folder, 2)
        assert [path.stem for path in paths] == record["averaged"]
        assert last_checkpoints(run.folder, 1) == paths[1:]
        model, tokenizer = average_model(paths)
        assert model.config == run.model.config
        texts = run.corpus.test.source
        assert Translator(model, tokenizer)(texts) == run.translator(texts)

    def test_too_many_or_too_few_are_refused(self, finished):
        with pytest.raises(ValueError, match="holds 2 checkpoints, fewer than last=3"):
            last_checkpoints(finished[0].folder, 3)
        with pytest.raises(ValueError, match="last must be at least 1, got 0"):
            last_checkpoints(finished[0].folder, 0)
        with pytest.raises(FileNotFoundError, match="nowhere"):
            last_checkpoints("nowhere")

    def test_a_checkpoint_without_its_run_is_refused(self, finished, tmp_path):
        lonely = tmp_path / "checkpoints" / "step-00000006.safetensors"
        lonely.parent.mkdir()
        lonely.write_bytes(finished[0].trainer.checkpoints()[0].read_bytes())
        with pytest.raises(FileNotFoundError, match="lies in no training run"):
            average_model([lonely])
