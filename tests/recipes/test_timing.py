"""How long a run will take: what is left of it, and nothing changed by asking."""

import pytest
import torch

from transformer.data.corpora import Split
from transformer.recipes import timing
from transformer.recipes.timing import RunTime, estimate_time, measure_step, preview
from transformer.recipes.translation import TranslationRun


@pytest.fixture
def run(tmp_path, preset, corpus):
    return TranslationRun(preset, tmp_path / "run", corpus=corpus)


def ask(run, tests=None):
    return estimate_time(
        run.preset,
        run.trainer,
        run.translator,
        run.validation,
        run.tests if tests is None else tests,
    )


def test_by_hand(run, monkeypatch):
    """8 steps, a validation every 4 on 5 of 12 pairs, 12 test pairs by greedy search and beam 2."""
    monkeypatch.setattr(timing, "measure_step", lambda trainer, repeats=3: 2.0)
    seconds = {1: 0.1, 2: 0.5}
    monkeypatch.setattr(timing, "_seconds_per_sentence", lambda t, split, beam: seconds[beam])
    assert len(run.validation) == 12 and run.preset.score_pairs == 5
    perplexity = len(run.trainer.validation) * 2.0 / 3
    found = ask(run)
    assert found.training == pytest.approx(16.0)
    assert found.validation == pytest.approx(2 * (perplexity + 5 * 0.1))
    assert found.evaluation == pytest.approx(2 * 12 * (0.1 + 0.5))
    assert found.total == found.training + found.validation + found.evaluation
    # Two test sets take twice as long; a run at step 5 has 3 steps and one validation left.
    twice = ask(run, dict(run.tests, other=run.tests["test"]))
    assert twice.evaluation == pytest.approx(2 * found.evaluation)
    run.trainer.step = 5
    later = ask(run)
    assert later.training == pytest.approx(6.0)
    assert later.validation == pytest.approx(found.validation / 2)
    run.trainer.step = 8
    assert ask(run) == RunTime(0.0, 0.0, found.evaluation)


def test_nothing_is_changed(run, preset, corpus, tmp_path):
    weights = {name: w.clone() for name, w in run.model.state_dict().items()}
    random = torch.get_rng_state()
    assert ask(run).total > 0
    assert torch.equal(torch.get_rng_state(), random)
    assert all(torch.equal(w, weights[name]) for name, w in run.model.state_dict().items())
    assert all(p.grad is None for p in run.model.parameters())
    assert run.train()
    untouched = TranslationRun(preset, tmp_path / "other", corpus=corpus)
    assert untouched.train()
    for name, weight in untouched.model.state_dict().items():
        assert torch.equal(run.model.state_dict()[name], weight), name


def test_measuring_works_with_a_single_batch(tmp_path, preset, corpus, monkeypatch):
    large = preset.with_changes(batch_tokens=10_000, accumulate=3)
    trainer = TranslationRun(large, tmp_path, corpus=corpus).trainer
    assert len(trainer.batches) == 1
    clock = iter(range(0, 1000, 10))
    monkeypatch.setattr(timing, "perf_counter", lambda: next(clock))
    # Two looks at the clock, 10 s apart, around 2 batches; three batches make a step.
    assert measure_step(trainer, repeats=2) == 15


def test_a_translation_is_cut_at_about_the_reference(run, monkeypatch):
    asked = []

    def translate(texts, beam_size, max_length):
        asked.append((len(texts), beam_size, max_length))
        return texts

    monkeypatch.setattr(run.translator, "translate", translate)
    sources = [f"the cat sees {i} of the dogs." for i in range(100)]
    split = Split(sources, ["Katze"] * 100)
    tokens = len(run.tokenizer.encode("Katze"))
    timing._seconds_per_sentence(run.translator, split, 2)
    assert asked[-1] == (64, 2, round(1.3 * tokens) + 1)


def test_a_preview_counts_a_small_batch_up(preset, monkeypatch):
    """The corpus is not touched: a price can be named before anything is downloaded."""
    asked = []

    def measure(trainer, repeats):
        asked.append((trainer.batches.batch_tokens, trainer.config.compile, repeats))
        return 0.5

    monkeypatch.setattr(timing, "measure_step", measure)
    monkeypatch.setattr(timing, "_CPU_BATCH", 200)
    large = preset.with_changes(
        corpus="wmt14-en-de", batch_tokens=1000, max_steps=7200, compile=True, max_length=50
    )
    needs = preview(large, price=2.0)
    assert asked == [(200, False, 1)]
    assert needs.hours == pytest.approx(0.5 * 5 * 7200 / 3600) and needs.cost == 2 * needs.hours
    assert needs.download > 0 and preview(large, at_hand=True).download == 0


def test_a_preview_times_real_steps(preset):
    assert preview(preset).hours > 0
