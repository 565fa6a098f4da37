"""Recorded runs are grouped by recipe, and compared with scores of the same metric only."""

import numpy as np
import pytest

from transformer.inference.significance import sentence_counts
from transformer.recipes.record import hardware_of, recorded_command
from transformer_book.studies.translation.counts import write_counts
from transformer_book.studies.translation.published import METRICS
from transformer_book.studies.translation.summary import (
    Group,
    Spread,
    fitting_published,
    group_runs,
    learning_curve,
    metric_of,
    metric_title,
)
from transformer_book.studies.translation.verdicts import (
    all_differences,
    difference,
    rivals,
)

PLAIN = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"
TOKENS = PLAIN.replace("13a", "none")


def make_record(
    seed=1, score=41.0, name="multi30k-tiny", text="moses-lowercase", architecture="transformer",
    corpus="multi30k-en-de", **training,
):  # fmt: skip
    signature = TOKENS if text == "moses-lowercase" else PLAIN
    entries = [
        dict(split=split, weights=weights, beam_size=beam, name="BLEU", signature=signature,
             score=score + shift, pairs=10)
        for split, shift in (("test", 0.0), ("test2017", -8.0))
        for weights, beam, shift in ((("averaged", 5, shift)), ("averaged", 1, 1), ("last", 5, 2))
    ]  # fmt: skip
    recipe = dict(seed=seed, max_steps=8, batch_tokens=4, accumulate=2) | training
    return dict(
        preset=dict(name=name, text=text, beam_size=5, model=dict(d_model=8), training=recipe),
        seed=seed, architecture=architecture, metrics=entries,
        corpus=dict(name=corpus, languages=corpus.split("-")[-2:], sha256="a1"),
    )  # fmt: skip


def seeds(*scores, **options):
    name = options.get("name", "multi30k-tiny")
    return {
        f"{name}-seed{i}": make_record(i, score, **options) for i, score in enumerate(scores, 1)
    }


def group(*scores, **options):
    (only,) = group_runs(seeds(*scores, **options))
    return only


RECURRENT = dict(name="multi30k-recurrent", architecture="recurrent")
WHERE = ("multi30k-test2016", "moses-lowercase")


def test_runs_that_differ_in_the_seed_alone_are_one_group():
    runs = seeds(41.0, 40.0, 42.5) | seeds(39.0, **RECURRENT)
    tiny, recurrent = group_runs(dict(reversed(runs.items())))[::-1]
    assert list(tiny.runs) == [f"multi30k-tiny-seed{i}" for i in (1, 2, 3)]
    assert list(recurrent.runs) == ["multi30k-recurrent-seed1"]
    assert (tiny.architecture, recurrent.architecture) == ("transformer", "recurrent")
    assert tiny.languages == ("en", "de") and tiny.budget == (8, 8)


@pytest.mark.parametrize("change", [dict(max_steps=9), dict(text="plain")])
def test_runs_that_differ_in_more_are_two_groups(change):
    runs = {"one": make_record(1), "two": make_record(2, **change)}
    assert [list(found.runs) for found in group_runs(runs)] == [["one"], ["two"]]


def test_the_batches_of_all_processes_count_for_the_budget():
    shared = make_record(2, accumulate=1)
    shared["environment"] = dict(hardware=dict(device="cpu", cpu="A", threads=3, devices=2))
    assert hardware_of(shared) == "A, 6 threads"
    (both,) = group_runs({"one": make_record(1), "two": shared})
    assert both.budget == (8, 8) and len(both.runs) == 2
    assert Group("two", {"two": shared}).budget == (8, 8)
    shared["command"] = "transformer train x"
    launch = "ACCELERATE_USE_CPU=true torchrun --nproc-per-node 2 -m transformer.cli train x"
    assert recorded_command(shared) == launch


def test_a_run_resumed_on_another_machine_names_both():
    def place(step, **hardware):
        return dict(from_step=step, environment=dict(hardware=hardware))

    gpu, cpu = (
        place(0, device="H100", devices=1),
        place(5, device="cpu", cpu="A", threads=1, devices=1),
    )
    again = place(6, device="cpu", cpu="A", threads=1, devices=1)  # with other code
    moved = make_record(1) | dict(parts=[gpu, cpu, again])
    assert hardware_of(moved) == "H100, from step 5 on A, 1 thread"


def test_two_budgets_of_one_preset_are_told_apart_by_name():
    found = group_runs({"one": make_record(1), "two": make_record(1, max_steps=9000)})
    assert [each.name for each in found] == ["multi30k-tiny, 8 steps", "multi30k-tiny, 9,000 steps"]


def test_two_precisions_of_one_budget_are_told_apart_by_name():
    found = group_runs({name: make_record(1, precision=name) for name in ("fp32", "bf16")})
    names = [each.name for each in found]
    assert names == ["multi30k-tiny, 8 steps, fp32", "multi30k-tiny, 8 steps, bf16"]
    french = make_record(1, corpus="multi30k-en-fr", precision="bf16")
    found = group_runs({"german": make_record(1, precision="fp32"), "french": french})
    assert {each.name for each in found} == {"multi30k-tiny, 8 steps"}


def test_a_run_that_started_from_another_has_the_steps_of_both():
    second = make_record(1, max_steps=20) | dict(first_run=make_record(1))
    found = group_runs({"one": make_record(1), "two": second})
    assert [each.name for each in found] == ["multi30k-tiny, 8 steps", "multi30k-tiny, 28 steps"]
    assert [each.budget for each in found] == [(8, 8), (28, 8)]


def test_a_record_of_before_a_field_existed_joins_its_group():
    old = make_record(1, text="plain")
    del old["preset"]["text"], old["architecture"]
    (both,) = group_runs({"old": old, "new": make_record(2, text="plain")})
    assert both.architecture == "transformer" and len(both.runs) == 2


def test_scores_are_those_of_the_mean_weights_and_the_recipes_beam():
    scores = group(41.0, 40.0).scores()
    assert scores == {
        WHERE: Spread((41.0, 40.0)),
        ("multi30k-test2017", "moses-lowercase"): Spread((33.0, 32.0)),
    }


def test_ways_to_count_are_told_apart():
    plain, tokens = make_record(text="plain"), make_record()
    cased = dict(name="BLEU", signature=PLAIN)
    found = [
        metric_of(plain, cased),
        metric_of(plain, dict(name="BLEU", signature=PLAIN.replace("mixed", "lc"))),
        metric_of(plain, dict(name="BLEU, compounds split", signature=TOKENS)),
        metric_of(tokens, dict(name="BLEU", signature=TOKENS)),
        metric_of(plain, dict(name="chrF2", signature="nc:6")),
        metric_of(tokens, dict(name="chrF2", signature="nc:6")),
        metric_of(plain, dict(name="BLEU", signature=TOKENS)),
        metric_of(tokens, cased),
    ]
    assert found[:4] == ["sacrebleu", "sacrebleu-lowercase", "tokenised", "moses-lowercase"]
    assert len(set(found)) == len(found) and not set(found[4:]) & set(METRICS)
    assert metric_title("sacrebleu") == "sacreBLEU" and metric_title("chrF2") == "chrF2"


def test_a_spread_is_mean_lowest_and_highest_of_so_many_seeds():
    assert str(Spread((41.0, 40.0, 42.6))) == "41.20 (40.00 to 42.60, 3 seeds)"
    assert str(Spread((41.0,))) == "41.00 (one seed)"


def test_published_scores_that_fit_are_of_the_same_set_metric_and_languages():
    fitting = fitting_published([group(41.0)])
    assert {score.score for score in fitting} == {31.25, 39.00, 41.02}
    assert fitting_published([group(41.0, text="plain")]) == []
    french = fitting_published([group(41.0, corpus="multi30k-en-fr")])
    assert {score.score for score in french} == {51.93, 59.02}


REFERENCES = [" ".join(f"w{(i * j) % 50}" for j in range(3, 15)) for i in range(1, 121)]


def translations(right, seed):
    """Translations of which so large a share is the reference; the others lack a word."""
    random = np.random.default_rng(seed)
    return [
        text if random.random() < right else text.rpartition(" ")[0].replace("w1", "x")
        for text in REFERENCES
    ]


def recorded_group(folder, shares, **changes):
    """A group of runs whose translations are counted in ``folder``."""
    found = group(*(40.0 for _ in shares), **changes)
    for seed, (name, share) in enumerate(zip(found.runs, shares, strict=True)):
        output = translations(share, [seed, int(1000 * share)])
        counts = {"test BLEU": sentence_counts(output, REFERENCES, "none")}
        write_counts(folder / f"{name}.counts.npz", counts)
    return found


@pytest.mark.parametrize(
    "mine, theirs, ahead",
    [
        ((0.8, 0.8), (0.3, 0.3), 1),
        ((0.3, 0.3), (0.8, 0.8), -1),
        ((0.5, 0.5), (0.5, 0.5), 0),
        ((0.2, 0.9), (0.3, 0.3), 0),  # the seeds disagree
    ],
)
def test_two_groups_differ_only_beyond_their_paired_interval(mine, theirs, ahead, tmp_path):
    one, other = (
        recorded_group(tmp_path, shares, **changes)
        for shares, changes in ((mine, {}), (theirs, RECURRENT))
    )
    found = difference(one, other, WHERE, tmp_path)
    opposite = difference(other, one, WHERE, tmp_path)
    assert found.low < found.mean < found.high and opposite.mean == pytest.approx(-found.mean)
    assert (found.low > 0) - (found.high < 0) == ahead


def test_groups_without_counts_are_not_compared(tmp_path):
    one, other = recorded_group(tmp_path, (0.5,)), group(39.0, **RECURRENT)
    assert difference(one, other, WHERE, tmp_path) is None


def test_rivals_have_the_same_corpus_text_budget_and_precision():
    tiny, fair = group(41.0), group(39.0, **RECURRENT)
    unfair = [
        group(39.0, **RECURRENT, max_steps=9),
        group(39.0, **RECURRENT, text="plain"),
        group(39.0, **RECURRENT, precision="bf16"),
        group(39.0, **RECURRENT, corpus="multi30k-en-fr"),
    ]
    assert rivals([fair, tiny, *unfair]) == [(tiny, fair)]


def test_all_rivals_are_compared_wherever_both_have_counts(tmp_path):
    one, other = (
        recorded_group(tmp_path, (share,), **changes)
        for share, changes in ((0.8, {}), (0.3, RECURRENT))
    )
    [(rival, where, metric, gap)] = all_differences([one, other], tmp_path)
    assert (rival, where, metric) == (other, "multi30k-test2016", "BLEU")
    assert 0 < gap.low < gap.mean


def test_a_learning_curve_counts_tokens_at_validations_only():
    curve = [dict(step=2, loss=9.0), dict(step=4, bleu=1.0, perplexity=50.0)]
    record = dict(target_tokens=80, steps=8, curve=curve)
    assert learning_curve(record) == [(40.0, 1.0, 50.0)]
    second = dict(target_tokens=40, steps=8, curve=curve, first_run=record)
    assert learning_curve(second) == [(40.0, 1.0, 50.0), (100.0, 1.0, 50.0)]
