"""``transformer train``: from files to a record, resumed, repeated and fine-tuned."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
import torch

from tests.cli.conftest import SMALL, fails, run, settings
from transformer.recipes.record import read_record
from transformer.training.checkpoint import load_weights


def test_it_prints_the_plan_the_progress_the_scores_and_where_the_model_is(trained, text):
    folder, result = trained
    lines = result.stdout.splitlines()
    assert lines[0].startswith("smoke: t.en, 61 training pairs")
    assert lines[1] == (
        f"validation: 3 pairs held out of {text[0]}, the first 2 scored during training "
        f"(score_pairs)"
    )
    assert lines[2] == "test: none, the final scores are those of validation"
    assert any(line.startswith("time: about") for line in lines)
    steps = [line for line in lines if re.match(r"step \d of 6: loss .* tokens/s, .* left", line)]
    assert len(steps) == 6
    assert sum(line.startswith("step 3 of 6: perplexity") for line in lines) == 1
    assert sum("saved checkpoints/" in line for line in lines) == 3
    assert any("BLEU" in line and "version:" in line for line in lines)
    assert lines[-1] == f"model: {folder / 'model'}, record: {folder / 'run.json'}"
    assert result.stderr == ""
    record = read_record(folder / "run.json")
    assert record["preset"]["model"]["d_model"] == 16
    assert record["corpus"]["languages"] == ["en", "fr"]
    card = (folder / "model/README.md").read_text()
    assert "language:\n- en\n- fr" in card and record["command"] in card


def test_a_finished_run_stops_at_once_unless_something_is_missing(trained, files, tmp_path):
    folder = shutil.copytree(trained[0], tmp_path / "run")
    command = "train", "smoke", "-o", folder, *files, *settings()
    before = (folder / "run.json").stat().st_mtime_ns
    lines = run(*command).stdout.splitlines()
    assert lines[0] == "already finished, at step 6; nothing left to do" and len(lines) == 2
    assert (folder / "run.json").stat().st_mtime_ns == before
    (folder / "model/model.safetensors").unlink()
    assert "BLEU" in run(*command).stdout and (folder / "model/model.safetensors").exists()
    assert "BLEU" in run(*command, "--set", "beam_size=2").stdout  # another evaluation


def test_files_for_validation_and_test_and_what_they_share_with_training(text, files, tmp_path):
    held_out = [
        word
        for name in ("valid", "test")
        for side, path in zip(("source", "target"), text, strict=True)
        for word in (f"--{name}-{side}-file", path)
    ]
    folder = tmp_path / "run"
    command = "train", "smoke", "-o", folder, *files, *held_out, *settings(max_steps=1)
    result = run(*command)
    assert f"test: 64 pairs of {text[0]}\n" in result.stdout
    shared = "64 source and 64 target sentences of 64 pairs are in"
    assert result.stderr.splitlines() == [
        f"transformer: warning: validation: {shared} train as well",
        f"transformer: warning: test: {shared} train as well",
        f"transformer: warning: test: {shared} validation as well",
    ]
    record = read_record(folder / "run.json")
    assert record["corpus"]["pairs"] == dict(train=64, validation=64, test=64)
    assert {metric["split"] for metric in record["metrics"]} == {"test"}
    assert run(*command).stderr == ""  # finished


def test_the_recorded_command_repeats_a_fine_tuning_on_own_files(
    trained, text, tmp_path, monkeypatch
):
    records = []
    for name in ("first", "copy"):
        (tmp_path / name).mkdir()
        for path, copy in zip(text, ("my text.en", "my text.fr"), strict=True):
            other_text = path.read_text().replace("dog", "young goat")
            (tmp_path / name / copy).write_text(other_text)
        monkeypatch.chdir(tmp_path / name)
        words = ["transformer", "train", "smoke", "--init-from", trained[0]]
        words += ["--source-file", "my text.en", "--target-file", "my text.fr"]
        words += ["--set", "dropout=0.2", "--set", "beam_size=1", "--set", "max_steps=2"]
        words += ["--set", "seed=3", "--set", "score_pairs=2", "--set", "learning_rate_factor=1e-6"]
        if records:
            words = shlex.split(records[0]["command"])
        run(*words[1:])
        records.append(read_record("runs/smoke/run.json"))
    first, again = records
    assert first["preset"]["init_from"] == str(trained[0])
    assert again["command"] == first["command"]
    for field in ("preset", "metrics", "samples", "corpus"):
        assert again[field] == first[field]
    losses = [[line["loss"] for line in r["curve"] if "loss" in line] for r in records]
    assert losses[0] == losses[1] != []
    # At this learning rate the weights are still those that it started from.
    start = load_weights(trained[0] / "model/model.safetensors")
    for name, weight in load_weights("runs/smoke/model/model.safetensors").items():
        torch.testing.assert_close(weight, start[name], atol=1e-4, rtol=0)
    assert Path("runs/smoke/tokenizer.json").read_bytes() == (
        (trained[0] / "tokenizer.json").read_bytes()
    )
    # The folder keeps what it started from.
    other = ["--init-from", trained[0] / "checkpoints/best.safetensors", *words[5:]]
    fails("train", "smoke", *other, saying="started from .*small, but init_from is .*best")


FILES = ["--source-file", "a.en", "--target-file", "a.de"]


@pytest.mark.parametrize("arguments, saying", [
    (["smok"], "unknown preset 'smok'; did you mean 'smoke'.* known: smoke, tatoeba-small"),
    (["smoke", "--set", "dmodel=16"], "unknown field 'dmodel'; did you mean 'd_model'?"),
    (["smoke", "--set", "init_from=tatoeba-en-de"], "init_from is an option of its own: --init"),
    (["smoke", "--set", "d_model"], "a change is written FIELD=VALUE, got 'd_model'"),
    (["smoke", "--set", "d_model=big"], "d_model must be a whole number .*, got 'big'"),
    (["smoke", "--set", "dropout=nan"], r"dropout must be a number in \[0, 1\), got nan"),
    (["smoke", "--set", "compile=yes"], "compile must be True or False, got 'yes'"),
    (["smoke", "--set", "precision=fp8"], "precision must be one of .'fp32', 'bf16', 'fp16'"),
    (["smoke", "--set", "corpus=tatoeba-en-xx"], "unknown corpus 'tatoeba-en-xx'; did you"),
    (["smoke", "--set", "beam_size=100000"], "beam_size must be .* from 1 to 256, got 100000"),
    (["smoke", "--set", "vocab_size=2000000"], "vocab_size must be at most 1,000,000, got"),
    (["smoke", *FILES[:2]], "--source-file and --target-file"),
    (["smoke", "--test-source-file", "a", "--test-target-file", "b"], "--source-file"),
    (["smoke", *FILES], "no such file: a.en"),
    (["smoke", *FILES, "--data-dir", "."], "--data-dir is for the preset's corpus; give either"),
    (["smoke", *FILES, "--set", "corpus=tatoeba-en-de"], "either files or --set corpus"),
    (["smoke", "--data-dir", "nowhere"], "data_dir must be a directory"),
    (["smoke", "--track", "nothing"], "unknown tracker 'nothing'; known are .*tensorboard"),
])  # fmt: skip
def test_bad_input_gives_one_line_and_no_folder(tmp_path, arguments, saying, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # As outside the tests, where no annotation is checked.
    monkeypatch.setattr("jaxtyping.config.jaxtyping_disable", True)
    fails("train", *arguments, saying=saying)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("source, target, saying", [
    (b"a\nb\n", b"a\n", "equally many lines: .* has 2, .* has 1"),
    (b"a\n\xff\n", b"a\nb\n", "is not UTF-8: line 2 holds the byte 0xff"),
    (b"a\nb\n", b"c\nd\n", "vocab_size 300 is larger than the text supports"),
])  # fmt: skip
def test_bad_text_gives_one_line_and_no_folder(tmp_path, source, target, saying):
    (tmp_path / "a").write_bytes(source)
    (tmp_path / "b").write_bytes(target)
    files = ["--source-file", tmp_path / "a", "--target-file", tmp_path / "b"]
    fails("train", "smoke", "-o", tmp_path / "run", *files, *settings(), saying=saying)
    assert not (tmp_path / "run").exists()


def test_a_preset_is_fitted_to_a_card_and_goes_on_with_another(tmp_path, files):
    small = {k: v for k, v in SMALL.items() if k not in ("batch_tokens", "max_steps")}
    words = [w for item in small.items() for w in ("--set", "{}={}".format(*item))]
    arguments = "train", "tatoeba-large", "-o", tmp_path / "run", *files, *words
    shown = run(*arguments, "--card", "h100", "--set", "max_steps=2").stdout
    first, second, *_ = shown.splitlines()
    assert first == "card: H100 (80 GB), 85 GB; 8,192 tokens x 1, bf16"
    assert second.endswith("of its memory; estimated")
    # A T4 would get fp16, which a CPU refuses; the run keeps what it has begun with.
    shown = run(*arguments, "--card", "t4", "--set", "max_steps=3").stdout
    assert shown.startswith("card: T4, 16 GB; 8,192 tokens x 1, bf16") and "from step 2" in shown
    new = "train", "tatoeba-large", "-o", tmp_path / "new", *files, *words
    fails(*new, "--card", "t4", saying='"fp16" needs a GPU')
    fails(*new, "--card", "p100", saying="card must be one of t4, 24gb, .*got 'p100'")
