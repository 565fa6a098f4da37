"""Hugging Face's Marian model takes the same steps as ours, and translates by its own search."""

import pytest
from sacrebleu.metrics import BLEU, CHRF

from transformer.data.corpora import load_corpus
from transformer.data.parallel import Split
from transformer.recipes.presets import get_preset
from transformer.recipes.record import read_record
from transformer_book.studies.recording import stored_texts
from transformer_book.studies.translation import peer

SMALL = get_preset("smoke").with_changes(
    max_steps=6, warmup_steps=4, layer_norm_eps=1e-5, log_every=1, save_every=6,
    validate_every=6, score_pairs=0, test_pairs=3,
)  # fmt: skip


def test_without_dropout_the_losses_of_all_steps_agree():
    ours, found = peer.train(peer.OURS, SMALL)
    theirs, theirs_found = peer.train(peer.MARIAN, SMALL)
    assert len(ours) == 6 and ours[0] - ours[-1] > 0.1
    assert ours == pytest.approx(theirs, rel=1e-5)
    assert len(found) == 3 and found == theirs_found


def test_the_difference_is_ours_minus_theirs():
    good, bad = ([f"{i} b c d {last} f" for i in range(8)] for last in "ex")
    found = {f"ours, seed {seed}": good for seed in peer.SEEDS}
    found |= {f"MarianMTModel, seed {seed}": bad for seed in peer.SEEDS}
    for metric in ("BLEU", "chrF2"):
        difference = peer.compare(found, Split(good, good), metric)
        assert difference["low"] > 0 and difference["high"] < 100


def test_the_recorded_scores_follow_from_the_translations():
    record, test = read_record(peer.RECORD), load_corpus("tatoeba-en-de").test
    found = stored_texts(peer.RECORD)
    assert found.keys() == record["runs"].keys()
    for name, run in record["runs"].items():
        for key, metric in (("bleu", BLEU()), ("chrf", CHRF())):
            assert metric.corpus_score(found[name], [test.target]).score == pytest.approx(run[key])
    assert peer.compare(found, test) == pytest.approx(record["difference"], abs=1e-6)
