"""Recorded runs are resumed, compared fairly, and have the scores that they say."""

import re
import signal
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import sacremoses
import torch
from sacrebleu.metrics import BLEU, CHRF

from transformer.data.corpora import load_corpus
from transformer.data.corpora.catalogue import corpus_catalogue
from transformer.inference.significance import sentence_counts
from transformer.model.config import TransformerConfig
from transformer.recipes.estimate import training_flops
from transformer.recipes.presets import PRESETS
from transformer.recipes.record import read_record, read_translations
from transformer.recipes.translation import TranslationRun
from transformer.saving.locate import SHIPPED_FOLDER
from transformer.training.callbacks import Callback
from transformer_book.studies.translation import record, ship
from transformer_book.studies.translation.costs import training_work
from transformer_book.studies.translation.counts import SCORES, read_counts, write_counts
from transformer_book.studies.translation.published import CONVERSIONS, METRICS, PUBLISHED
from transformer_book.studies.translation.recorded import RUNS, recorded_runs
from transformer_book.studies.translation.summary import (
    Spread,
    fitting_published,
    group_runs,
    metric_of,
)
from transformer_book.studies.translation.verdicts import difference, rivals
from transformer_book.studies.translation.watched import Watch

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


def seeds(*scores, name="multi30k-tiny", **options):
    return {
        f"{name}-seed{i}": make_record(i, score, name, **options)
        for i, score in enumerate(scores, 1)
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
    assert tiny.budget == (8, 8)
    for change in (dict(max_steps=9), dict(text="plain")):
        found = group_runs({"one": make_record(1), "two": make_record(2, **change)})
        assert [list(each.runs) for each in found] == [["one"], ["two"]]


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


def test_published_scores_that_fit_are_of_the_same_set_metric_and_languages():
    fitting = fitting_published([group(41.0)])
    assert {score.score for score in fitting} == {31.25, 39.00, 41.02}
    assert fitting_published([group(41.0, text="plain")]) == []
    french = fitting_published([group(41.0, corpus="multi30k-en-fr")])
    assert {score.score for score in french} == {51.93, 59.02}


REFERENCES = [" ".join(f"w{(i * j) % 50}" for j in range(3, 15)) for i in range(1, 121)]


def recorded_group(folder, shares, **changes):
    """A group of runs, counted in ``folder``, of which so large a share is as the reference."""
    found = group(*(40.0 for _ in shares), **changes)
    for seed, (name, share) in enumerate(zip(found.runs, shares, strict=True)):
        right = np.random.default_rng([seed, int(1000 * share)]).random(len(REFERENCES)) < share
        pairs = zip(REFERENCES, right, strict=True)
        output = [text if same else text.rpartition(" ")[0] for text, same in pairs]
        counts = {"test BLEU": sentence_counts(output, REFERENCES, "none")}
        write_counts(folder / f"{name}.counts.npz", counts)
    return found


@pytest.mark.parametrize(
    "mine, theirs, ahead",
    [
        ((0.8, 0.8), (0.3, 0.3), 1),
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


def test_rivals_have_the_same_corpus_text_budget_and_precision():
    tiny, fair = group(41.0), group(39.0, **RECURRENT)
    unfair = [
        group(39.0, **RECURRENT, max_steps=9),
        group(39.0, **RECURRENT, text="plain"),
        group(39.0, **RECURRENT, precision="bf16"),
        group(39.0, **RECURRENT, corpus="multi30k-en-fr"),
    ]
    assert rivals([fair, tiny, *unfair]) == [(tiny, fair)]


def test_the_count_is_the_formula_for_a_transformer():
    record = recorded_runs()["multi30k-tiny-cpu-seed1"]
    config = TransformerConfig(**record["preset"]["model"])
    wanted = training_flops(config, 15, 15) / 15 * record["target_tokens"]
    assert training_work(record) == pytest.approx(wanted, rel=1e-6)


BIBLIOGRAPHY = Path(__file__).resolve().parents[3] / "book" / "references.bib"


def test_metrics_and_languages_are_known_and_bibliography_keys_exist():
    keys = set(re.findall(r"^@\w+\{([^,]+),", BIBLIOGRAPHY.read_text(encoding="utf-8"), re.M))
    for score in PUBLISHED:
        assert score.metric in METRICS and 0 < score.score < 100
        assert score.key is None or score.key in keys, score.key
        assert score.url.startswith("https://")
    places = [(s.system, s.languages, s.test_set, s.metric) for s in PUBLISHED]
    assert len(set(places)) == len(places)
    assert {conversion.key for conversion in CONVERSIONS} <= keys


def test_the_records_of_the_package_are_of_their_presets():
    for path in RUNS.glob("*.json"):
        name, _, seed = path.stem.rpartition("-seed")
        found = read_record(path)["preset"]
        if name in PRESETS:
            preset = PRESETS[name].with_changes(seed=int(seed))
            assert record.is_recorded(preset), path
        else:  # a preset with changes, which the name adds
            assert found["name"] in PRESETS and name.startswith(f"{found['name']}-"), path
            assert found["training"]["seed"] == int(seed), path


def test_a_run_is_recorded_and_resumed(tmp_path, preset, corpus, monkeypatch):
    monkeypatch.setattr(record, "RUNS", tmp_path / "records")
    make, train = partial(TranslationRun, corpus=corpus), TranslationRun.train
    monkeypatch.setattr(record, "TranslationRun", lambda p, folder, *_, **__: make(p, folder))
    monkeypatch.setattr(TranslationRun, "train", lambda run: False)  # Ctrl-C
    assert not record.record(preset, tmp_path) and not record.is_recorded(preset)
    monkeypatch.setattr(TranslationRun, "train", train)
    assert record.record(preset, tmp_path)
    name = record.run_name(preset)
    found = read_record(tmp_path / f"records/{name}.json")
    assert found == read_record(tmp_path / f"{name}/run.json")
    assert {*read_translations(tmp_path / f"records/{name}.translations.json.gz")} == {"test"}


def references(record, split):
    """The references of a test split, read from the corpus itself, as the recipe scores them."""
    corpus = load_corpus(record["corpus"]["name"])
    assert corpus.checksum == record["corpus"]["sha256"] or record["preset"]["text"] != "plain"
    texts = corpus.splits[split].target[: record["preset"]["test_pairs"]]
    if record["preset"].get("text", "plain") == "plain":
        return texts
    moses = sacremoses.MosesTokenizer(corpus.target_language)
    return [moses.tokenize(text.lower(), return_str=True, escape=False) for text in texts]


def recount(entry, hypotheses, targets):
    """Count again by sacreBLEU's own classes, with the options that the signature names."""
    options = dict(part.split(":", 1) for part in entry["signature"].split("|"))
    if entry["name"] == "chrF2":
        metric = CHRF(char_order=int(options["nc"]), word_order=int(options["nw"]))
    else:
        lowercase = options["case"] == "lc"
        metric = BLEU(tokenize=options["tok"], lowercase=lowercase, force=True)
    if options.get("compounds") == "split":
        moses = sacremoses.MosesTokenizer(options["moses"])

        def split(text):
            tokens = moses.tokenize(text, return_str=True, escape=False)
            return re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2", tokens)

        hypotheses, targets = ([*map(split, texts)] for texts in (hypotheses, targets))
    score = metric.corpus_score(hypotheses, [targets]).score
    for part in str(metric.get_signature()).split("|"):
        name, option = part.split(":", 1)
        assert name == "version" or options[name] == option
    return score


def is_best(record, entry):
    """Whether an entry is of the averaged weights and the preset's beam."""
    return (entry["weights"], entry["beam_size"]) == ("averaged", record["preset"]["beam_size"])


@pytest.mark.parametrize("name", recorded_runs())
def test_scores_follow_from_the_stored_translations(name):
    """Compute the scores of every page again, without code of the package."""
    record = recorded_runs()[name]
    assert "/home/" not in str(record) and "/tmp/" not in str(record)  # folders of a machine
    translations = read_translations(RUNS / f"{name}.translations.json.gz")
    corpus = record["corpus"]["name"]
    if not any(entry.name == corpus and entry.at_hand for entry in corpus_catalogue()):
        pytest.skip(f"{corpus} is not on this machine")
    entries = [entry for entry in record["metrics"] if is_best(record, entry)]
    assert len(entries) >= 2 * len(translations)
    for entry in entries:
        hypotheses, expected = translations[entry["split"]], references(record, entry["split"])
        assert len(hypotheses) == len(expected) == entry["pairs"]
        assert recount(entry, hypotheses, expected) == pytest.approx(entry["score"], abs=1e-6)


@pytest.mark.parametrize("name", recorded_runs())
def test_a_record_has_its_own_name_and_scores_that_follow_from_the_stored_counts(name):
    """This needs no corpus: the counts of all sentences add up to the recorded scores."""
    record, counts = recorded_runs()[name], read_counts(name)
    assert ship.record_name(record) == name and counts
    best = {(m["split"], m["name"]): m for m in record["metrics"] if is_best(record, m)}
    for key, table in counts.items():
        split, metric = key.split()
        assert len(table) == best[split, metric]["pairs"]
        score = SCORES[metric](table.sum(axis=0))
        assert score == pytest.approx(best[split, metric]["score"], abs=1e-6)


SHIPPED = {
    "tatoeba-en-de": "tatoeba-small-14000-steps-seed1",
    "tatoeba-en-fr": "tatoeba-small-en-fr-20000-steps-seed1",
}


@pytest.mark.parametrize(("name", "run"), SHIPPED.items())
def test_the_cards_in_the_package_follow_from_the_records(name, run):
    """A run of its own prints its command; one that continued another has no command to print."""
    record = recorded_runs()[run]
    card = ship.card(name, record)
    assert card.strip() == (SHIPPED_FOLDER / name / "README.md").read_text(encoding="utf-8").strip()
    assert (record["command"] in card) == ("first_run" not in record)


class Interrupt(Callback):
    def on_step(self, trainer):
        if trainer.step == 5:
            signal.raise_signal(signal.SIGINT)


def test_a_watch_changes_no_weight_and_its_rows_survive_an_interruption(tmp_path, preset, corpus):
    def begin(folder, *callbacks):
        return TranslationRun(preset, tmp_path / folder, corpus=corpus, callbacks=callbacks)

    steps = (0, 2, 3, 6, 8)
    whole, first, again = (Watch(("the cat sees 2 of the dogs.",), steps) for _ in range(3))
    plain, seen = begin("plain"), begin("seen", whole)
    assert plain.train() and seen.train() and [row["step"] for row in whole.rows] == list(steps)
    # Dropout draws random numbers, which a translation must not use up.
    for one, other in zip(plain.model.parameters(), seen.model.parameters(), strict=True):
        assert torch.equal(one, other)
    run = begin("stopped", first, Interrupt())
    assert not run.train() and [row["step"] for row in first.rows] == [0, 2, 3]
    run = begin("stopped", again)
    assert run.trainer.step == 5 and again.rows == first.rows
    assert run.train() and again.rows == whole.rows
