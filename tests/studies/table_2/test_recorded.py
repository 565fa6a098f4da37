"""The records that the pages draw from: all that are there, whole, and in a fixed order."""

import re
from pathlib import Path

import pytest
import sacremoses
from sacrebleu.metrics import BLEU, CHRF

from transformer.data.corpora import load_corpus
from transformer.data.corpora.catalogue import corpus_catalogue
from transformer.recipes.record import read_translations
from transformer_book.studies.translation.counts import SCORES, read_counts
from transformer_book.studies.translation.recorded import RUNS, recorded_runs, with_first_run
from transformer_book.studies.translation.ship import record_name


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
        hypotheses, targets = (
            [
                re.sub(r"(\S)-(\S)", r"\1 ##AT##-##AT## \2",
                       moses.tokenize(text, return_str=True, escape=False))
                for text in texts
            ]
            for texts in (hypotheses, targets)
        )  # fmt: skip
    score = metric.corpus_score(hypotheses, [targets]).score
    return score, dict(part.split(":", 1) for part in str(metric.get_signature()).split("|"))


def check_recount(record, translations):
    """Check every score of the averaged weights and the preset's beam; return their number."""
    checked = 0
    for entry in record["metrics"]:
        if (entry["weights"], entry["beam_size"]) != ("averaged", record["preset"]["beam_size"]):
            continue
        hypotheses, expected = translations[entry["split"]], references(record, entry["split"])
        assert len(hypotheses) == len(expected) == entry["pairs"]
        score, signature = recount(entry, hypotheses, expected)
        assert score == pytest.approx(entry["score"], abs=1e-6), entry
        recorded = dict(part.split(":", 1) for part in entry["signature"].split("|"))
        for option in signature.keys() - {"version"}:
            assert signature[option] == recorded[option], option
        checked += 1
    return checked


@pytest.mark.parametrize("name", recorded_runs())
def test_scores_follow_from_the_stored_translations(name):
    """Compute the scores of every page again, without code of the package."""
    record = recorded_runs()[name]
    assert "/home/" not in str(record) and "/tmp/" not in str(record)  # folders of a machine
    translations = read_translations(RUNS / f"{name}.translations.json.gz")
    corpus = record["corpus"]["name"]
    if not any(entry.name == corpus and entry.at_hand for entry in corpus_catalogue()):
        pytest.skip(f"{corpus} is not on this machine")
    assert check_recount(record, translations) >= 2 * len(translations)


@pytest.mark.parametrize("name", recorded_runs())
def test_a_record_is_named_after_what_it_holds(name):
    assert record_name(recorded_runs()[name]) == name


@pytest.mark.parametrize("name", recorded_runs())
def test_scores_follow_from_the_stored_counts(name):
    """This needs no corpus: the counts of all sentences add up to the recorded scores."""
    record, counts = recorded_runs()[name], read_counts(name)
    assert counts
    for key, table in counts.items():
        split, metric = key.split()
        best = "averaged", record["preset"]["beam_size"], split, metric
        (entry,) = [
            m
            for m in record["metrics"]
            if (m["weights"], m["beam_size"], m["split"], m["name"]) == best
        ]
        assert len(table) == entry["pairs"]
        assert SCORES[metric](table.sum(axis=0)) == pytest.approx(entry["score"], abs=1e-6)


def test_a_record_keeps_its_own_first_run():
    runs = {"first": dict(steps=2)}
    record = dict(preset=dict(init_from="runs/first/model"))
    assert with_first_run(record, runs) == record | dict(first_run=dict(steps=2))
    own = record | dict(first_run=dict(steps=1))
    assert with_first_run(own, runs) == own
    assert with_first_run(record, {}) == record


def test_a_beam_gains_on_captions_what_chapter_16_says():
    gains = []
    for record in recorded_runs().values():
        if record["corpus"]["name"].startswith("multi30k"):
            scores = {
                (entry["split"], entry["beam_size"]): entry["score"]
                for entry in record["metrics"]
                if entry["name"] == "BLEU" and entry["weights"] == "averaged"
            }
            gains += [
                score - scores[split, 1] for (split, beam), score in scores.items() if beam == 5
            ]
    chapter = Path(__file__).parents[3] / "notebooks" / "16_decoding.ipynb"
    said = f"above greedy search on every test set, by {min(gains):.1f} to {max(gains):.1f} BLEU"
    assert said in chapter.read_text(encoding="utf-8")
    assert len(gains) >= 60
    shipped = recorded_runs()["tatoeba-small-14000-steps-seed1"]["metrics"]
    greedy, beam = (
        entry["score"]
        for entry in shipped
        if (entry["split"], entry["weights"], entry["name"]) == ("challenge", "averaged", "BLEU")
    )
    said = f"this model scores {beam - greedy:.1f} BLEU higher with a beam of four"
    assert said in chapter.read_text(encoding="utf-8")
