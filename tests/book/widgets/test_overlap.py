"""The explorer of chapter 17 counts what sacreBLEU counts."""

import pytest
from sacrebleu.metrics import BLEU

from tests.self_contained import self_contained
from transformer_book.pictures import REFERENCE as SENTENCE
from transformer_book.widgets.overlap import OverlapExplorer

OTHER = "Das Tier überquerte die Straße nicht , weil es zu müde war ."
REFERENCE = SENTENCE.split()
TRANSLATION = OTHER.split()


def explorer():
    return OverlapExplorer(REFERENCE, {"ours": TRANSLATION, "</script>": REFERENCE[:-1]})


def test_it_is_small_repeatable_and_loads_nothing():
    self_contained(explorer, 60_000)


@pytest.mark.parametrize("kept", [None, 9, 4])
def test_its_score_is_that_of_sacrebleu(kept):
    metric = BLEU(tokenize="none", smooth_method="none", force=True)
    hypothesis = " ".join(TRANSLATION[:kept])
    wanted = metric.corpus_score([hypothesis], [[" ".join(REFERENCE)]]).score
    assert explorer().score("ours", kept) == pytest.approx(wanted)


def test_short_texts_are_refused():
    with pytest.raises(ValueError, match="4 tokens"):
        OverlapExplorer(REFERENCE, {"short": ["Das", "Tier"]})
