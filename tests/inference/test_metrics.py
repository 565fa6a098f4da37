"""Scores that can be computed by hand, and their signatures."""

from functools import partial

import pytest

from transformer.inference.metrics import bleu, chrf, compound_split_bleu

HYPOTHESES = ["the cat sat on the mat .", "Hello, World!"]
REFERENCES = ["the cat sat on a mat .", "Hello, World!"]


def test_bleu_by_hand():
    # 6 of 7 words, 4 of 6 pairs, 2 of 5 triples, 1 of 4 quadruples; of equal length.
    score = bleu(HYPOTHESES[:1], REFERENCES[:1])
    assert score.score == pytest.approx(100 * (6 / 7 * 4 / 6 * 2 / 5 * 1 / 4) ** 0.25)
    # The second sentence adds four words that are right: counts are summed, scores not averaged.
    score = bleu(HYPOTHESES, REFERENCES)
    assert score.score == pytest.approx(100 * (10 / 11 * 7 / 9 * 4 / 7 * 2 / 5) ** 0.25)


def test_compound_split_bleu_by_hand():
    pytest.importorskip("sacremoses")
    hypotheses, references = ["Die Kaffee-Kanne steht da."], ["Die Kaffee-Tasse steht da."]
    # Whole compounds: Die X steht da . has 4 of 5 words, 2 of 4 pairs, 1 of 3 triples, and no
    # quadruple, which is smoothed to half a one of 2.
    whole = 100 * (4 / 5 * 2 / 4 * 1 / 3 * 1 / 4) ** 0.25
    assert bleu(hypotheses, references).score == pytest.approx(whole)
    # Die Kaffee ##AT##-##AT## X steht da . has 6 of 7 words, 4 of 6 pairs, 2 of 5 triples, and
    # again no quadruple, of 4.
    split = 100 * (6 / 7 * 4 / 6 * 2 / 5 * 1 / 8) ** 0.25
    score = compound_split_bleu(hypotheses, references, "de")
    assert score.score == pytest.approx(split)
    assert score.name != "BLEU"
    for part in ("tok:none", "case:mixed", "moses:de", "compounds:split"):
        assert part in score.signature


def test_chrf_by_hand():
    # 2 of 3 letters, 1 of 2 pairs, 0 of 1 triples; there are no longer ones.
    assert chrf(["abc"], ["abd"]).score == pytest.approx(100 * (2 / 3 + 1 / 2 + 0) / 3)
    # Recall counts twice: precision 1 for both orders, recall 2/4 and 1/3.
    recall = (2 / 4 + 1 / 3) / 2
    assert chrf(["ab"], ["abcd"]).score == pytest.approx(100 * 5 * recall / (4 + recall))


@pytest.mark.parametrize("metric", [bleu, chrf, partial(compound_split_bleu, language="de")])
def test_bad_input(metric):
    for hypotheses, references, error in (
        (["one"], REFERENCES, ValueError),
        ([], [], ValueError),
        (["a", "b"], "ab", TypeError),
    ):
        with pytest.raises(error):
            metric(hypotheses, references)
