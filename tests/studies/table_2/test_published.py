"""Published scores are the printed ones, each with its source and its metric."""

import re
from pathlib import Path

from transformer_book.studies.translation.published import (
    CONVERSIONS,
    METRICS,
    PUBLISHED,
    published_scores,
)

EN_DE, EN_FR = ("en", "de"), ("en", "fr")
BIBLIOGRAPHY = Path(__file__).resolve().parents[3] / "book" / "references.bib"


def table_2(languages):
    scores = published_scores(languages, "newstest2014", "tokenised")
    return {score.system: score for score in scores}


def test_table_2_is_whole():
    german, french = table_2(EN_DE), table_2(EN_FR)
    assert {name: score.score for name, score in german.items()} == {
        "ByteNet": 23.75,
        "GNMT + RL": 24.6,
        "ConvS2S": 25.16,
        "MoE": 26.03,
        "GNMT + RL, ensemble": 26.30,
        "ConvS2S, ensemble": 26.36,
        "Transformer, base": 27.3,
        "Transformer, big": 28.4,
    }
    assert french["Transformer, base"].score == 38.1 and french["Transformer, big"].score == 41.8
    assert len(french) == 9 and german["Transformer, base"].training_flops == 3.3e18
    assert german["ConvS2S"].training_flops == 9.6e18
    assert french["MoE"].training_flops == 1.2e20
    assert german["ByteNet"].training_flops is None


def test_metrics_and_languages_are_known_and_bibliography_keys_exist():
    keys = set(re.findall(r"^@\w+\{([^,]+),", BIBLIOGRAPHY.read_text(encoding="utf-8"), re.M))
    for score in PUBLISHED:
        assert score.metric in METRICS and 0 < score.score < 100
        assert score.key is None or score.key in keys, score.key
        assert score.url.startswith("https://")
    places = [(s.system, s.languages, s.test_set, s.metric) for s in PUBLISHED]
    assert len(set(places)) == len(places)
    assert {conversion.key for conversion in CONVERSIONS} <= keys


def test_conversions_are_the_printed_ones():
    lost = {}
    for row in CONVERSIONS:
        if not row.lowercase:
            lost.setdefault(row.languages, []).append(round(row.tokenised - row.sacrebleu, 1))
    assert {pair: (min(found), max(found)) for pair, found in lost.items()} == {
        EN_DE: (0.2, 1.5),  # the authors' own checkpoint loses most
        EN_FR: (1.8, 2.9),
    }
    for found in lost.values():
        assert f"{min(found)} to {max(found)} points" in METRICS["tokenised"].meaning
