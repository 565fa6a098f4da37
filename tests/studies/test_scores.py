"""Every recorded score follows from the translations beside its record."""

import math

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF

from transformer.data.corpora import load_corpus
from transformer.data.corpora.local import require_file
from transformer.data.corpora.tatoeba import read_pairs
from transformer.recipes.record import read_record
from transformer_book.speed import record_export
from transformer_book.studies.choices.study import SCALES
from transformer_book.studies.left_out import study as choices
from transformer_book.studies.recording import SHIPPED, stored_texts
from transformer_book.studies.splits import study as leakage
from transformer_book.studies.translation import peer

METRICS = {"BLEU": BLEU(), "chrF2": CHRF()}


def short_pairs(split, words, most):
    pairs = [pair for pair in split if max(len(side.split()) for side in pair) <= words]
    return [target for _, target in pairs[:most]]


def of_the_peer(found):
    right = load_corpus(SHIPPED).test.target
    for name, run in found["runs"].items():
        yield name, right, dict(BLEU=run["bleu"], chrF2=run["chrf"])


def of_the_export(found):
    right = load_corpus(SHIPPED).test.target[: found["pairs"]]
    for search, rows in found["searches"].items():
        for name, row in rows.items():
            yield f"{search}, {name}", right, dict(BLEU=row["bleu"])


def of_the_splits(found):
    pairs = read_pairs(require_file("deu.txt.xz", SHIPPED))
    for run in found["memory"]:
        random = np.random.default_rng(run["seed"])
        test = random.choice(len(pairs), leakage.TEST_PAIRS, replace=False)
        right = [pairs.target[i] for i in test]
        for name, score in run["bleu"].items():
            yield f"split {run['seed']}, {name}", right, dict(BLEU=score)


def of_rows(scale):
    def scores(found):
        split = load_corpus(scale.base.corpus).splits[scale.split]
        right = short_pairs(split, scale.longest or math.inf, scale.base.test_pairs)
        for run in found["runs"][::4]:
            yield f"{run['row']}, seed {run['seed']}", right, run

    return scores


STUDIES = {
    peer.RECORD: of_the_peer,
    record_export.RECORD: of_the_export,
    leakage.RECORD: of_the_splits,
    choices.RECORD: of_rows(choices.SCALE),
    **{scale.record: of_rows(scale) for scale in SCALES.values() if scale.record.exists()},
}


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_scores_are_counted_again(path):
    texts = stored_texts(path)
    for name, right, scores in STUDIES[path](read_record(path)):
        # The first runs of two studies kept no translations.
        if name not in texts and path in (choices.RECORD, SCALES["table-3-small"].record):
            continue
        for metric, count in METRICS.items():
            if metric in scores:
                again = count.corpus_score(texts[name], [right]).score
                assert again == pytest.approx(scores[metric], abs=1e-3), name
