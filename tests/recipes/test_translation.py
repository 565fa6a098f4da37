"""A translation run from text to BLEU: complete, repeatable, and safe to interrupt."""

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
from transformer.inference.translator import Translator
from transformer.recipes.averaging import average_model, last_checkpoints
from transformer.recipes.estimate import run_bytes, size
from transformer.recipes.record import read_record, read_translations
from transformer.recipes.translation import TranslationRun, evaluate
from transformer.training.checkpoint import load_weights
from transformer.training.curve import read_curve
from transformer.training.run_folder import FolderInUseError


@pytest.fixture(scope="module")
def finished(tmp_path_factory, preset, corpus):
    run = TranslationRun(preset, tmp_path_factory.mktemp("runs") / "whole", corpus=corpus)
    assert run.train()
    return run, run.finish()


def numbers(record):
    """Everything that must repeat exactly; times do not."""
    steps = [line for line in record["curve"] if "perplexity" in line]
    return (
        [m["score"] for m in record["metrics"]],
        [(line["step"], line["perplexity"], line["bleu"]) for line in steps],
        record["samples"],
    )


def test_the_record_is_complete(finished, corpus, preset):
    run, record = finished
    assert read_record(run.folder / "run.json") == json.loads(json.dumps(record))
    assert record["preset"] == {**preset.to_dict(), "corpus": "small"}
    assert record["corpus"]["sha256"] == corpus.checksum
    assert record["corpus"]["pairs"] == {"train": 100, "validation": 12, "test": 12}
    assert record["steps"] == 8 and record["seed"] == preset.training.seed
    assert record["target_tokens"] == run.trainer.tokens > 0
    rows = [(m["split"], m["weights"], m["beam_size"], m["name"]) for m in record["metrics"]]
    assert rows == [
        ("test", weights, beam_size, name)
        for weights in ("last", "averaged")
        for beam_size in (1, 2)
        for name in ("BLEU", "chrF2")
    ]
    losses = {line["step"]: line["loss"] for line in record["curve"] if "loss" in line}
    assert list(losses) == list(range(1, 9)) and losses[8] < losses[1]
    assert [line["step"] for line in record["curve"] if "bleu" in line] == [4, 8]


def test_the_model_folder_translates_as_the_run_does(finished):
    run, record = finished
    loaded = Translator.from_pretrained(run.folder / "model")
    texts = run.corpus.test.source
    assert loaded(texts) == run.translator(texts) == Translator.from_pretrained(run.folder)(texts)
    scores = evaluate(loaded, run.corpus.test, beam_size=2)
    assert [s.score for s in scores] == [m["score"] for m in record["metrics"][-2:]]


def test_the_averaged_weights_are_the_mean(finished):
    run, record = finished
    assert record["averaged"] == ["step-00000006", "step-00000008"]
    first, second = (load_weights(path) for path in run.trainer.checkpoints())
    shipped = load_weights(run.folder / "model/model.safetensors")
    for name, weight in shipped.items():
        mean = (first[name].double() + second[name].double()) / 2
        assert torch.allclose(weight.double(), mean, atol=1e-7), name
    assert any(not torch.equal(first[name], shipped[name]) for name in shipped)
    model, tokenizer = average_model(last_checkpoints(run.folder, 2))
    texts = run.corpus.test.source
    assert Translator(model, tokenizer)(texts) == run.translator(texts)


def test_the_stored_translations_are_those_that_were_scored(finished):
    run, record = finished
    stored = read_translations(run.folder / "translations.json.gz")
    assert list(stored) == ["test"]
    best = record["metrics"][-2]
    assert (best["weights"], best["beam_size"], best["name"]) == ("averaged", 2, "BLEU")
    assert BLEU().corpus_score(stored["test"], [run.corpus.test.target]).score == best["score"]
    assert [s["translation"] for s in record["samples"]] == stored["test"][:8]


def test_the_search_is_the_presets(tmp_path, preset, corpus):
    changed = replace(preset, alpha=1.5, penalty="fairseq", beam_size=3).with_changes(max_steps=1)
    run, searches = TranslationRun(changed, tmp_path / "run", corpus=corpus), []
    run.train()
    translate = run.translator.translate

    def noted(texts, beam_size, **options):
        searches.append((beam_size, *options.values()))
        return translate(texts, beam_size, **options)

    run.translator.translate = noted
    run.finish()
    assert searches == [(beam, 1.5, "fairseq") for beam in (1, 3, 1, 3)]


def test_moses_text_is_trained_on_and_scored_as_it_is(tmp_path, preset, make):
    pytest.importorskip("sacremoses")
    changed = replace(preset, text="moses-lowercase").with_changes(max_steps=1, vocab_size=290)
    run = TranslationRun(changed, tmp_path / "run", corpus=make(mark="!"))
    assert run.corpus.test.source[0].endswith(" !")
    assert run.corpus.test.target == [text.lower() for text in run.corpus.test.target]
    run.train()
    metrics = run.finish()["metrics"]
    assert all("|tok:none|" in m["signature"] for m in metrics if m["name"] == "BLEU")


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
    # Its own class reads it back, and the mean of its checkpoints is what was saved.
    model = type(run.model).from_pretrained(run.folder / "model")
    averaged, tokenizer = average_model(last_checkpoints(run.folder, 2))
    texts = corpus.test.source
    assert Translator(model, tokenizer)(texts) == run.translator(texts)
    assert Translator(averaged, tokenizer)(texts) == run.translator(texts)
    with pytest.raises(ValueError, match="another configuration"):
        TranslationRun(preset, run.folder, corpus=corpus)


def test_a_run_describes_itself(tmp_path, preset, corpus):
    run = TranslationRun(preset, tmp_path / "run", corpus=corpus)
    lines = {line.partition(":")[0]: line for line in run.describe().splitlines()}
    names = {"smoke", "model", "training", "device", "disk", "memory", "time", "folder"}
    assert set(lines) == names
    assert "100 training pairs" in lines["smoke"] and "vocabulary 300" in lines["smoke"]
    assert f"{run.model.num_parameters():,} parameters" in lines["model"]
    assert "8 steps of at most 200 tokens" in lines["training"]
    assert lines["disk"] == f"disk: {size(run_bytes(run.model.num_parameters(), 2))}"


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
    fresh = TranslationRun(preset, tmp_path / "other", corpus=corpus)
    assert fresh.tokenizer.encode("the cat") == run.tokenizer.encode("the cat")


def test_overrides_reach_model_training_and_record(tmp_path, preset, make):
    changed = preset.with_changes(
        d_ff=24, learning_rate_factor=3.0, warmup_steps=7, max_steps=1, score_pairs=0
    )
    run = TranslationRun(changed, tmp_path / "run", corpus=make(test=False))
    assert run.train() and run.model.config.d_ff == 24
    first = read_curve(run.folder / "curve.jsonl")[0]
    assert first["learning_rate"] == pytest.approx(3.0 * 16**-0.5 * 7**-1.5)
    record = run.finish()
    assert record["preset"]["training"]["warmup_steps"] == 7
    assert {m["split"] for m in record["metrics"]} == {"validation"}  # there is no test split


def test_sentences_too_long_for_the_model_do_not_end_a_run_late(tmp_path, preset, corpus):
    splits, long = dict(corpus.splits), "cat " * 40
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
    def test_a_folder_with_other_files_is_left_alone(self, finished, tmp_path, preset, corpus):
        (tmp_path / "notes.txt").write_text("mine")
        # A trained model has a tokenizer.json too; it must not be overwritten.
        for folder in (tmp_path, tmp_path / "notes.txt", finished[0].folder / "model"):
            with pytest.raises(FileExistsError):
                TranslationRun(preset, folder, corpus=corpus)
        assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]

    @pytest.mark.parametrize(
        "changes, message",
        [
            (dict(d_ff=32), r"another configuration \(model\.d_ff: 16 there, 32 here\)"),
            (dict(vocab_size=301), r"vocab_size: 300 there, 301 here"),
        ],
    )
    def test_a_run_of_another_configuration_is_refused(
        self, finished, preset, corpus, make, changes, message
    ):
        with pytest.raises(ValueError, match=message):
            TranslationRun(preset.with_changes(**changes), finished[0].folder, corpus=corpus)
        with pytest.raises(ValueError, match="another configuration .text: "):
            TranslationRun(preset, finished[0].folder, corpus=make(mark="!"))

    @pytest.mark.parametrize("changes", [dict(vocab_size=5000), dict(max_length=2)])
    def test_a_run_that_cannot_start_leaves_nothing(self, tmp_path, preset, corpus, changes):
        with pytest.raises(ValueError):
            TranslationRun(preset.with_changes(**changes), tmp_path / "run", corpus=corpus)
        assert not (tmp_path / "run").exists()

    def test_two_runs_in_one_folder(self, tmp_path, preset, corpus):
        """The second is refused before it writes anything."""
        pytest.importorskip("fcntl")
        script = (
            "import sys; from pathlib import Path; "
            "from transformer.training.run_folder import claim_folder; "
            "claim = claim_folder(Path(sys.argv[1])); print(flush=True); sys.stdin.read()"
        )
        command = [sys.executable, "-c", script, tmp_path]
        environment = dict(os.environ, PYTHONPATH=str(Path(__file__).parents[2]))
        with subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as other:
            assert other.stdout.readline() == b"\n"
            before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
            with pytest.raises(FolderInUseError, match=f"process {other.pid} is training in"):
                TranslationRun(preset, tmp_path, corpus=corpus)
            after = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
            assert after == before
            other.stdin.close()

    def test_a_damaged_tokenizer_is_named(self, tmp_path, preset, corpus):
        """Two swapped merges make another valid tokenizer."""
        run = TranslationRun(preset.with_changes(max_steps=1), tmp_path, corpus=corpus)
        run.train()
        content = json.loads((tmp_path / "tokenizer.json").read_text())
        content["model"]["merges"][:2] = content["model"]["merges"][1::-1]
        (tmp_path / "tokenizer.json").write_text(json.dumps(content))
        with pytest.raises(ValueError, match=r"tokenizer\.json is not as it was saved"):
            TranslationRun(preset.with_changes(max_steps=2), tmp_path, corpus=corpus)
        with pytest.raises(ValueError, match=r"tokenizer\.json is not as it was saved"):
            average_model(last_checkpoints(tmp_path, 1))

    def test_checkpoints_that_cannot_be_averaged(self, finished, tmp_path):
        with pytest.raises(ValueError, match="holds 2 checkpoints, fewer than last=3"):
            last_checkpoints(finished[0].folder, 3)
        with pytest.raises(FileNotFoundError, match="nowhere"):
            last_checkpoints("nowhere")
        lonely = tmp_path / "checkpoints" / "step-00000006.safetensors"
        lonely.parent.mkdir()
        lonely.write_bytes(finished[0].trainer.checkpoints()[0].read_bytes())
        with pytest.raises(FileNotFoundError, match="lies in no training run"):
            average_model([lonely])
