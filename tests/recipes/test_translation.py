"""A translation run from text to BLEU: complete, repeatable, and safe to interrupt."""

import json
import signal
import warnings
from dataclasses import replace

import pytest
import torch
from sacrebleu.metrics import BLEU

from tests.training.tiny_training import at_step
from transformer.baselines import ConvolutionalConfig, RecurrentConfig
from transformer.data.corpora import Corpus, Split
from transformer.inference.translator import Translator
from transformer.model.transformer import Transformer
from transformer.recipes import translation
from transformer.recipes.averaging import average_model, last_checkpoints
from transformer.recipes.description import describe
from transformer.recipes.evaluation import evaluate
from transformer.recipes.record import read_translations, write_record
from transformer.recipes.translation import TranslationRun
from transformer.training.checkpoint import load_weights
from transformer.training.curve import read_curve


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
    texts = run.corpus.test.source
    assert average_model(last_checkpoints(run.folder, 2))(texts) == run.translator(texts)


def test_the_stored_translations_are_those_that_were_scored(finished):
    run, record = finished
    stored = read_translations(run.folder / "translations.json.gz")
    assert list(stored) == ["test"]
    best = record["metrics"][-2]
    assert (best["weights"], best["beam_size"], best["name"]) == ("averaged", 2, "BLEU")
    assert BLEU().corpus_score(stored["test"], [run.corpus.test.target]).score == best["score"]
    assert [s["translation"] for s in record["samples"]] == stored["test"][:8]


def test_moses_text_is_trained_on_and_scored_as_it_is(tmp_path, preset, make):
    pytest.importorskip("sacremoses")
    changed = replace(preset, text="moses-lowercase").with_changes(max_steps=1, vocab_size=290)
    run = TranslationRun(changed, tmp_path / "run", corpus=make(mark="!"))
    assert run.corpus.test.source[0].endswith(" !")
    assert run.corpus.test.target == [text.lower() for text in run.corpus.test.target]
    run.train()
    metrics = run.finish()["metrics"]
    assert all("|tok:none|" in m["signature"] for m in metrics if m["name"] == "BLEU")


def test_a_cell_that_makes_a_run_may_be_executed_again(tmp_path, preset, corpus):
    changed = preset.with_changes(max_steps=1)
    run = TranslationRun(changed, tmp_path / "run", corpus=corpus)
    run, former = TranslationRun(changed, tmp_path / "run", corpus=corpus), run
    assert run.train() and former.trainer.step == 0
    assert former.train() and former.trainer.step == 1


BASELINES = {
    "recurrent": RecurrentConfig(300, d_model=16, dropout=0.1),
    "convolutional": ConvolutionalConfig(300, d_model=16, num_layers=2, max_length=64),
}


@pytest.mark.parametrize("name", BASELINES)
def test_a_baseline_runs_as_the_transformer_does(tmp_path, preset, corpus, name):
    changed = replace(preset, model=BASELINES[name])
    run = TranslationRun(changed, tmp_path / "run", corpus=corpus)
    assert f"model: {name}, " in describe(run)
    assert run.train()
    record = run.finish()
    assert record["architecture"] == name
    assert record["preset"]["model"] == BASELINES[name].to_dict()
    # It is read back, and the mean of its checkpoints is what was saved.
    loaded = Translator.from_pretrained(run.folder / "model")
    assert f"\nA {name} encoder-decoder with " in loaded.card
    averaged = average_model(last_checkpoints(run.folder, 2))
    texts = corpus.test.source
    assert loaded(texts) == run.translator(texts)
    assert averaged(texts) == run.translator(texts)
    with pytest.raises(ValueError, match="another configuration"):
        TranslationRun(preset, run.folder, corpus=corpus)


def interrupt(run, stop_at):
    """Train, and end it by a signal at a step."""
    at_step(run.trainer, stop_at, lambda: signal.raise_signal(signal.SIGTERM))
    assert not run.train()
    assert run.trainer.step == stop_at and run.trainer.stopped_by == signal.SIGTERM


@pytest.mark.parametrize("stop_at", [1, 5])  # before the first checkpoint, and between two
def test_an_interrupted_run_ends_as_if_it_had_never_stopped(
    finished, tmp_path, preset, corpus, stop_at
):
    interrupt(TranslationRun(preset, tmp_path / "run", corpus=corpus), stop_at)
    torch.manual_seed(99)  # another process has other random numbers
    again = TranslationRun(preset, tmp_path / "run", corpus=corpus)
    assert f"resuming from step {stop_at}" in describe(again)
    assert again.train()
    assert numbers(again.finish()) == numbers(finished[1])


def test_a_run_that_moves_to_another_machine_records_both(
    finished, tmp_path, preset, corpus, monkeypatch
):
    for machine, stop_at in (("A", 2), ("A", 3), ("B", 5), ("B", None)):
        place = dict(hardware=dict(device=machine, devices=1))
        monkeypatch.setattr(translation, "describe_environment", lambda _, place=place: place)
        run = TranslationRun(preset, tmp_path / "run", corpus=corpus)
        interrupt(run, stop_at) if stop_at else run.train()
    record = run.finish()
    assert [(p["from_step"], p["environment"]["hardware"]["device"]) for p in record["parts"]] == [
        (0, "A"),
        (3, "B"),
    ]
    assert run.finished() == record
    card = (tmp_path / "run/model/README.md").read_text(encoding="utf-8")
    assert "on A, from step 3 on B" in card
    assert "parts" not in finished[1]


def test_a_run_with_more_steps_than_asked_for_is_not_interrupted(finished, preset, corpus):
    folder = finished[0].folder
    shorter = TranslationRun(preset.with_changes(max_steps=1), folder, corpus=corpus)
    assert f"already at step {finished[0].trainer.step}" in describe(shorter)
    assert shorter.train()
    with pytest.raises(ValueError, match=r"is at step 8, beyond max_steps 1; ask for max_steps=8,"):
        shorter.finish()


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


def test_sentences_too_long_for_the_model_do_not_end_a_run_late(tmp_path, preset, corpus):
    splits, long = dict(corpus.splits), "cat " * 40
    splits["test"] = Split([*corpus.test.source, long], [*corpus.test.target, "Katze"])
    splits["validation"] = Split([long, "the cat"], ["Katze", "Katze"])
    small = Corpus("small", "en", "de", "free", splits)
    changed = preset.with_changes(max_steps=1)
    for positions, left in (("learned", 12), ("sinusoidal", 13)):
        model = replace(changed.model, positions=positions, max_length=30)
        with warnings.catch_warnings(record=True) as caught:
            run = TranslationRun(replace(changed, model=model), tmp_path / positions, corpus=small)
        said = "left out 1 of 13 pairs with more than 30 tokens"
        assert any(said in str(each.message) for each in caught) == (left == 12)
        assert run.train()
        assert {m["pairs"] for m in run.finish()["metrics"]} == {left}


class TestFolders:
    def test_a_finished_run_of_an_earlier_version_is_finished(self, finished):
        run, record = finished
        older = json.loads(json.dumps(record))
        del older["preset"]["init_from"], older["preset"]["training"]["fast"]
        write_record(run.folder / "run.json", older)
        try:
            assert run.finished() == older
            older["preset"]["beam_size"] += 1
            write_record(run.folder / "run.json", older)
            assert run.finished() is None
        finally:
            write_record(run.folder / "run.json", record)

    def test_a_folder_with_other_files_is_left_alone(self, finished, tmp_path, preset, corpus):
        (tmp_path / "notes.txt").write_text("mine")
        # A trained model has a tokenizer.json too; it must not be overwritten.
        for folder in (tmp_path, tmp_path / "notes.txt", finished[0].folder / "model"):
            with pytest.raises(FileExistsError, match="notes.txt|/model exists"):
                TranslationRun(preset, folder, corpus=corpus)
        assert [file.name for file in tmp_path.iterdir()] == ["notes.txt"]

    @pytest.mark.parametrize("changes", [dict(d_ff=32), dict(vocab_size=301), {}])
    def test_a_run_of_another_configuration_is_refused(self, finished, preset, make, changes):
        other = make(mark="." if changes else "!")
        what = r"model.d_ff: 16 there, 32 here" if "d_ff" in changes else ""
        with pytest.raises(ValueError, match=f"another configuration.*{what}"):
            TranslationRun(preset.with_changes(**changes), finished[0].folder, corpus=other)

    @pytest.mark.parametrize("changes", [dict(vocab_size=5000), dict(max_length=2)])
    def test_a_run_that_cannot_start_leaves_nothing(self, tmp_path, preset, corpus, changes):
        with pytest.raises(ValueError):
            TranslationRun(preset.with_changes(**changes), tmp_path / "run", corpus=corpus)
        assert not (tmp_path / "run").exists()

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

    def test_only_models_that_differ_in_their_weights_are_averaged(self, finished, tmp_path):
        run = finished[0].folder / "model"
        translator = Translator.from_pretrained(run)

        def changed(**changes):
            model = Transformer(replace(translator.model.config, **changes))
            model.load_state_dict(translator.model.state_dict())
            return Translator(model, translator.tokenizer).save_pretrained(tmp_path / "model")

        assert average_model([run, changed(dropout=0.0)])("the cat") == translator("the cat")
        with pytest.raises(
            ValueError, match=r"is another model than .* \(num_heads: 1 there, 2 here"
        ):
            average_model([run, changed(num_heads=1)])
        with pytest.raises(ValueError, match="fr has another vocabulary than tatoeba-en-de"):
            average_model(["tatoeba-en-de", "tatoeba-en-fr"])
