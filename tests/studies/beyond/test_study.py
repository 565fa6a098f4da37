"""The networks of the four tasks, and their record."""

import numpy as np
import pytest
import torch
from torch import nn

from transformer.model.embedding import TokenEmbedding
from transformer_book.studies.other_tasks import study
from transformer_book.studies.other_tasks.encoder_model import VectorEmbedding, best_span
from transformer_book.studies.other_tasks.patch_explorer import PatchExplorer
from transformer_book.studies.other_tasks.rivals import AttentiveGRU, LSTMModel, count
from transformer_book.studies.other_tasks.tasks import NAMES, load_task

RIVALS = (LSTMModel, AttentiveGRU)


@pytest.mark.parametrize("rival", RIVALS)
def test_padding_changes_no_answer_of_a_rival(rival):
    torch.manual_seed(0)
    model = rival(TokenEmbedding(9, 8), 8, 2, each=True).eval()
    ids = torch.tensor([[3, 4, 5]])
    padded = torch.tensor([[3, 4, 5, 0, 0], [6, 7, 8, 3, 4]])
    torch.testing.assert_close(model(padded)[0, :3], model(ids)[0])
    model.each = False
    torch.testing.assert_close(model(padded)[0], model(ids)[0])
    model.each = True
    assert not torch.allclose(model(torch.tensor([[4, 3, 5]]))[0, 2], model(ids)[0, 2], atol=1e-4)


@pytest.mark.parametrize("rival", RIVALS)
def test_a_rival_reads_both_ways_and_answers_once(rival):
    torch.manual_seed(0)
    model = rival(VectorEmbedding(3, 8), 8, 4).eval()
    x = torch.randn(2, 5, 3)
    assert model(x).shape == (2, 4)
    model.each = True
    other = x.clone()
    other[:, -1] += 1
    assert not torch.allclose(model(x)[:, 0], model(other)[:, 0], atol=1e-5)


def test_networks_are_about_as_large():
    sizes = [count(make(load_task("digits"))) for make in study.NETWORKS.values()]
    assert max(sizes) / min(sizes) < 1.1


def test_the_best_span_is_in_order_and_within_the_text():
    logits = torch.full((1, 4, 2), -5.0)
    logits[0, 1, 0], logits[0, 2, 0] = -4.0, 3.0
    logits[0, 1, 1], logits[0, 3, 1] = 4.0, 2.0
    real = torch.ones(1, 4, dtype=torch.bool)
    assert [x.item() for x in best_span(logits, real)] == [2, 3]
    real[0, 3] = False
    assert [x.item() for x in best_span(logits, real)] == [1, 1]


def test_the_record_holds_every_planned_run():
    record = study.recorded_study()
    runs = record["runs"]
    assert {run["task"] for run in runs} == set(NAMES) == {*record["sizes"]["test"]}
    assert (record["warmup"], record["dropout"]) == (study.WARMUP, study.DROPOUT)
    assert len(study.cases()) == len({*study.cases()}) == 2 * (4 * 3 + 2)
    for task, method, factor in study.cases():
        for rate in study.RATES[factor]:
            tried = study.scores_of(runs, task, method, factor, "validation", rate)
            assert len(tried) == study.TRIED
        rate = study.chosen_rate(runs, task, method, factor)
        tested = study.scores_of(runs, task, method, factor, rate=rate)
        assert len(tested) == len(study.SEEDS)
        assert np.array_equal(tested, study.scores_of(runs, task, method, factor))
    for method in ("3 nearest images", "gradient boosting"):
        assert len(study.scores_of(runs, "digits", method)) == 1


def test_the_chosen_rate_is_the_best_on_validation_and_not_on_the_test():
    runs = [
        dict(task="a", method="b", factor=4, part="validation", rate=rate, scores={"right": x})
        for rate, found in ((1e-3, (1, 9)), (2e-3, (6, 7)), (5e-3, (2, 2)), (1e-2, (1, 1)),
                            (2e-2, (0, 0)))
        for x in found
    ]  # fmt: skip
    runs.append(runs[0] | dict(part="test", rate=1e-3, scores={"right": 100}))
    assert study.chosen_rate(runs, "a", "b", 4) == 2e-3
    assert study.scores_of(runs, "a", "b", 4, "validation", 2e-3).tolist() == [6, 7]
    assert study.scores_of(runs, "a", "b", 4).tolist() == [100]
    assert study.scores_of(runs, "a", "b").tolist() == []


def test_the_learning_rate_rises_over_a_tenth_of_the_steps(monkeypatch):
    seen = []
    monkeypatch.setattr(study, "train_by_rows", lambda *given: seen.append(given))
    study.train("LSTM", load_task("digits"), seed=3, rate=0.01, factor=4)
    assert seen[0][3:] == (1600, study.BATCH_SIZE, 0.01, 160, 3)


def test_all_networks_drop_as_much():
    for make in study.NETWORKS.values():
        drops = [m.p for m in make(load_task("digits")).modules() if isinstance(m, nn.Dropout)]
        assert set(drops) - {0.0} == {study.DROPOUT}


def test_a_cheap_recorded_score_comes_out_again():
    for name in ("digits", "rivers"):
        method, make = load_task(name).simple
        recorded = study.scores_of(study.recorded_study()["runs"], name, method)
        assert recorded == pytest.approx([next(iter(make().values()))], abs=1e-3)


def test_a_network_learns_and_a_seed_repeats():
    task = load_task("digits")
    short = type(task)(**{**task.__dict__, "steps": 120})
    first, again = (study.train("Transformer", short, 0, rate=5e-3) for _ in range(2))
    for one, other in zip(first.parameters(), again.parameters(), strict=True):
        assert torch.equal(one, other)
    with torch.no_grad():
        assert task.score(first(task.test_inputs), task.test_answers)["right, %"] > 20


def test_the_patch_explorer_shows_weights_that_sum_to_one():
    torch.manual_seed(0)
    model = study.encoder(load_task("digits")).eval()
    explorer = PatchExplorer(model, torch.rand(2, 8, 8), [3, 5])
    assert explorer.weights.shape == (2, 2, 4, 16, 16)
    assert np.allclose(explorer.weights.sum(axis=-1), 1, atol=1e-5)
    shown = explorer._repr_mimebundle_()
    assert len(shown["text/html"].encode()) < 80_000 and shown == explorer._repr_mimebundle_()
    with pytest.raises(ValueError, match="one to six"):
        PatchExplorer(model, torch.rand(7, 8, 8), [1] * 7)
