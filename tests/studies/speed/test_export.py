"""The comparison of the exported model keeps what each engine wrote."""

import pytest
from sacrebleu.metrics import BLEU

from transformer.data.corpora import load_corpus
from transformer.inference.translator import Translator
from transformer.recipes.record import read_record
from transformer_book.speed.record_export import RECORD, SEARCHES, compare
from transformer_book.studies.recording import SHIPPED, stored_texts


def check_recount(found, texts, split):
    for search, rows in found["searches"].items():
        for name, row in rows.items():
            again = BLEU().corpus_score(texts[f"{search}, {name}"], [split.target]).score
            assert row["bleu"] == pytest.approx(again, abs=1e-3)
    assert len(texts) == 3 * len(SEARCHES)


def test_all_searches_of_all_engines_are_kept():
    pytest.importorskip("ctranslate2", reason="needs ctranslate2: requirements-test.txt")
    split, texts = load_corpus(SHIPPED).test.first(3), {}
    found = compare(Translator.from_pretrained(SHIPPED), split, texts)
    check_recount(found, texts, split)
    assert texts["greedy, ours"] == texts["greedy, float32"]


def test_the_recorded_scores_follow_from_the_translations():
    texts, record = stored_texts(RECORD), read_record(RECORD)
    check_recount(record, texts, load_corpus(SHIPPED).test.first(record["pairs"]))
