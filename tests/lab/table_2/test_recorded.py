"""The records that the pages draw from: all that are there, whole, and in a fixed order."""

import json
import re

import pytest
import sacremoses
from sacrebleu.metrics import BLEU, CHRF

from transformer.data.corpora import load_corpus
from transformer.data.corpora.catalogue import corpus_catalogue
from transformer.lab.table_2.recorded import RUNS, recorded_runs
from transformer.recipes.record import read_translations, write_record


def test_every_record_under_its_name_in_order(tmp_path):
    for name in ("wmt14-base", "multi30k-tiny", "tatoeba-small"):
        write_record(tmp_path / f"{name}.json", dict(steps=len(name)))
    (tmp_path / "notes.txt").write_text("not a record")
    (tmp_path / ".half-written.json.12.tmp").write_text("{")
    assert recorded_runs(tmp_path / "none") == {}
    runs = recorded_runs(tmp_path)
    assert list(runs) == ["multi30k-tiny", "tatoeba-small", "wmt14-base"]
    assert runs["tatoeba-small"] == dict(steps=13)


def test_by_default_the_records_of_the_package():
    runs = recorded_runs()
    assert list(runs) == sorted(path.stem for path in RUNS.glob("*.json"))
    for name, record in runs.items():
        for field in ("preset", "seed", "corpus", "environment", "minutes", "metrics", "curve"):
            assert record.get(field) is not None, f"{name} has no {field}"
        assert all(metric["signature"] for metric in record["metrics"])
        # The pages should not show the folders of a machine.
        assert "/home/" not in json.dumps(record) and "/tmp/" not in json.dumps(record)


def translations_path(name, folder=RUNS):
    return folder / f"{name}.translations.json.gz"


def requires_translations(record):
    """Records have carried the penalty of their search since translations have been kept."""
    return any("penalty" in entry for entry in record["metrics"])


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


def check_recount(record, translations, targets):
    """Check every score of the averaged weights and the preset's beam; return their number."""
    checked = 0
    for entry in record["metrics"]:
        if (entry["weights"], entry["beam_size"]) != ("averaged", record["preset"]["beam_size"]):
            continue
        hypotheses, expected = translations[entry["split"]], targets(record, entry["split"])
        assert len(hypotheses) == len(expected) == entry["pairs"]
        score, signature = recount(entry, hypotheses, expected)
        assert score == pytest.approx(entry["score"], abs=1e-6), entry
        recorded = dict(part.split(":", 1) for part in entry["signature"].split("|"))
        if entry["name"] == "BLEU":
            plain = record["preset"].get("text", "plain") == "plain"
            assert recorded["tok"] == ("13a" if plain else "none")
        for option in signature.keys() - {"version"}:
            assert signature[option] == recorded[option], option
        checked += 1
    return checked


@pytest.mark.parametrize("name", recorded_runs())
def test_scores_follow_from_the_stored_translations(name):
    """Compute the scores of every page again, without code of the package."""
    record = recorded_runs()[name]
    if not translations_path(name).exists():
        assert not requires_translations(record), f"{name} has lost its translations"
        pytest.skip("from before translations were kept")
    translations = read_translations(translations_path(name))
    corpus = record["corpus"]["name"]
    if not any(entry.name == corpus and entry.at_hand for entry in corpus_catalogue()):
        pytest.skip(f"{corpus} is not on this machine")
    assert check_recount(record, translations, references) >= 2 * len(translations)
