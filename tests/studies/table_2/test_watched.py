"""Watching a run: sentences are translated at the requested steps, and training does not change."""

import signal

import pytest
import torch

from transformer.inference.translator import Translator
from transformer.recipes.record import read_record
from transformer.recipes.translation import TranslationRun
from transformer.training.callbacks import Callback
from transformer_book.studies.translation import watched
from transformer_book.studies.translation.record import run_name
from transformer_book.studies.translation.recorded import recorded_runs
from transformer_book.studies.translation.watched import Watch

SENTENCES = ("the cat sees 2 of the dogs.", "the tree sees 5 of the books.")
STEPS = (0, 2, 3, 6, 8)


class Interrupt(Callback):
    def on_step(self, trainer):
        if trainer.step == 5:
            signal.raise_signal(signal.SIGINT)


@pytest.fixture(scope="module")
def plain(tmp_path_factory, preset, corpus):
    run = TranslationRun(preset, tmp_path_factory.mktemp("plain") / "run", corpus=corpus)
    assert run.train()
    return run


@pytest.fixture(scope="module")
def seen(tmp_path_factory, preset, corpus):
    watch = Watch(SENTENCES, STEPS)
    folder = tmp_path_factory.mktemp("watched") / "run"
    run = TranslationRun(preset, folder, corpus=corpus, callbacks=[watch])
    assert run.train()
    return run, watch


def weights(run):
    return run.model.state_dict()


def test_rows_come_from_the_requested_steps_and_the_model_at_each(seen):
    run, watch = seen
    assert [row["step"] for row in watch.rows] == list(STEPS)
    assert all(len(row["translations"]) == len(SENTENCES) for row in watch.rows)
    last = Translator(run.model, run.tokenizer).translate(SENTENCES, beam_size=1)
    assert watch.rows[-1]["translations"] == last
    assert watch.rows[0]["tokens"] == 0 and watch.rows[-1]["tokens"] <= run.trainer.tokens
    assert len({tuple(row["translations"]) for row in watch.rows}) > 1


def test_training_is_the_same_with_and_without_a_watch(plain, seen):
    # Dropout draws random numbers, which a translation must not use up.
    for name, weight in weights(plain).items():
        assert torch.equal(weight, weights(seen[0])[name]), name


def test_rows_survive_an_interruption(tmp_path, preset, corpus, seen):
    first, again = Watch(SENTENCES, STEPS), Watch(SENTENCES, STEPS)
    folder = tmp_path / "run"
    run = TranslationRun(preset, folder, corpus=corpus, callbacks=[first, Interrupt()])
    assert not run.train() and [row["step"] for row in first.rows] == [0, 2, 3]
    run = TranslationRun(preset, folder, corpus=corpus, callbacks=[again])
    assert run.trainer.step == 5 and again.rows == first.rows
    assert run.train() and again.rows == seen[1].rows
    # A finished run gives its rows without training.
    later = Watch(SENTENCES, STEPS)
    TranslationRun(preset, folder, corpus=corpus, callbacks=[later])
    assert later.rows == again.rows


def test_the_record_is_whole():
    found = read_record(watched.RECORD)
    assert found["run"] == run_name(watched.PRESET)
    assert tuple(found["sentences"]) == watched.SENTENCES
    rows = found["rows"]
    assert [row["step"] for row in rows] == list(watched.STEPS)
    assert rows[-1]["step"] == watched.PRESET.training.max_steps
    assert all(len(row["translations"]) == len(watched.SENTENCES) for row in rows)
    tokens = [row["tokens"] for row in rows]
    assert tokens == sorted(tokens)
    # At first one token is repeated, at the end no sentence is.
    assert len(set(rows[0]["translations"][0].split())) == 1
    # The run has a record of its own, and averaging gave these translations.
    assert recorded_runs()[found["run"]]["steps"] == rows[-1]["step"]
    last = found["averaged"]
    assert all(0 < len(text.split()) < 25 for text in last) and len(set(last)) == len(last)
