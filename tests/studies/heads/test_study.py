"""The study of all heads: its measurements and its record."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sacrebleu.metrics import BLEU

from transformer.data.corpora import load_corpus
from transformer.data.corpora.download import sha256
from transformer.data.parallel import Split
from transformer.data.tokenizer import Tokenizer
from transformer.inference.metrics import bleu
from transformer.inference.translator import Translator
from transformer.model.config import TransformerConfig
from transformer.model.transformer import Transformer
from transformer.saving.locate import locate
from transformer_book.studies.recording import stored_texts
from transformer_book.studies.what_heads_learn.ablation import (
    Head,
    edited,
    heads_of,
    pair_losses,
    silent,
)
from transformer_book.studies.what_heads_learn.attention_alignment import (
    cross_word_weights,
    strongest_links,
)
from transformer_book.studies.what_heads_learn.study import (
    EDITS,
    RECORD,
    alignment_errors,
    bleu_without,
    head_groups,
    loss_without,
    mixed_groups,
    recorded_study,
    study_text,
)
from transformer_book.studies.what_heads_learn.word_alignment import alignment_error_rate


@pytest.fixture(scope="module")
def translator(corpus):
    tokenizer = Tokenizer.train(corpus.train.source + corpus.train.target, 300)
    torch.manual_seed(0)
    config = TransformerConfig(300, d_model=8, d_ff=8, num_heads=2, num_layers=1)
    return Translator(Transformer(config), tokenizer)


@pytest.fixture(scope="module")
def text(translator, corpus):
    return study_text(translator, corpus, pairs=8, aligner_pairs=50)


def test_losses_are_measured_once(translator, text):
    model, batches = translator.model, text.batches
    groups = {name: head_groups(model)[name] for name in ("encoder 1.1", "cross layer 1")}
    assert groups["cross layer 1"] == [Head("cross", 0, 0), Head("cross", 0, 1)]
    told: list[str] = []
    known = {"encoder 1.1": {"silent": [7.0, 6.0, 8.0]}}
    whole, found = loss_without(model, text, groups, {"silent": silent}, known, told.append)
    assert found is known and found["encoder 1.1"]["silent"] == [7.0, 6.0, 8.0]
    assert told == ["cross layer 1, silent"]
    assert whole.mean == pair_losses(model, batches).mean
    changed = pair_losses(model, batches, dict.fromkeys(groups["cross layer 1"], silent))
    more, low, high = found["cross layer 1"]["silent"]
    assert more == pytest.approx(changed.mean - whole.mean, abs=1e-6) and low <= more <= high

    again = loss_without(model, text, groups, EDITS)[1]
    assert list(again["encoder 1.1"]) == ["silent", "shuffled", "even"]
    torch.rand(1)
    assert loss_without(model, text, groups, EDITS)[1] == again  # the shuffles as well
    # Of pairs that all share a sentence, no other test set can be drawn.
    whole = replace(text, groups=[0] * len(text.groups))
    more, low, high = loss_without(model, whole, groups, EDITS)[1]["encoder 1.1"]["silent"]
    assert low == high == pytest.approx(more)


def test_mixed_groups_have_the_size_of_a_layer_and_heads_of_all_layers():
    config = TransformerConfig(9, d_model=8, d_ff=8, num_heads=4, num_layers=3)
    groups = mixed_groups(Transformer(config), draws=5)
    assert len(groups) == 15 and groups == mixed_groups(Transformer(config), draws=5)
    for name, heads in groups.items():
        assert {head.kind for head in heads} == {name.split()[0]} and len(set(heads)) == 4
        counts = np.bincount([head.layer for head in heads], minlength=3)
        assert sorted(counts) == [1, 1, 2]
    assert len({tuple(heads) for heads in groups.values()}) == 15
    assert not mixed_groups(Transformer(replace(config, num_layers=1)))


def test_the_record_has_the_mixed_groups_of_the_shipped_model():
    record = recorded_study()
    model = Translator.from_pretrained("tatoeba-en-de").model
    assert list(record["mixed"]) == list(mixed_groups(model))
    for more, low, high in (found["silent"] for found in record["mixed"].values()):
        assert low <= more <= high


def test_groups_share_a_sentence_and_follow_the_batches(translator, corpus):
    test = Split(["a", "bb bb bb", "a", "c"], ["x", "y y y", "z", "y y y"])
    text = study_text(translator, replace(corpus, splits=corpus.splits | {"test": test}), 4, 50)
    sides = [(pair.source, pair.target) for batch in text.pairs for pair in batch]
    assert len(sides) == len(text.groups) == 4
    for i, j in np.ndindex(4, 4):
        shared = any(a == b for a, b in zip(sides[i], sides[j], strict=True))
        assert shared == (text.groups[i] == text.groups[j])


def test_bleu_is_that_of_the_changed_model(translator, corpus):
    groups = {"all": heads_of(translator.model.config), "known": []}
    texts = {}
    score, lost, signature = bleu_without(
        translator, corpus.test, groups, texts, {"known": [1.0, 2.0, 3.0]}
    )
    assert texts["whole"] == translator.translate(corpus.test.source, beam_size=1)
    plain = bleu(texts["whole"], corpus.test.target)
    assert (score, signature) == (plain.score, plain.signature)
    with edited(translator.model, dict.fromkeys(groups["all"], silent)):
        assert texts["all"] == translator.translate(corpus.test.source, beam_size=1)
    assert lost["all"][0] == pytest.approx(score - bleu(texts["all"], corpus.test.target).score)
    assert lost["known"] == [1.0, 2.0, 3.0]


def test_bleu_is_drawn_by_groups_of_pairs_that_share_a_sentence(translator, corpus):
    test = Split(corpus.test.source, corpus.test.target[:1] * len(corpus.test))
    groups = {"all": heads_of(translator.model.config)}
    _, lost, _ = bleu_without(translator, test, groups, {})
    low, high = lost["all"][1:]
    assert low == high == pytest.approx(lost["all"][0])


def test_alignment_errors_of_heads_and_means(translator, text):
    right = text.pairs[0]
    found = alignment_errors(translator, right, "has read")
    assert list(found) == ["cross 1.1", "cross 1.2", "cross layer 1", "all"]
    weights = [cross_word_weights(translator, pair, "has read") for pair in right]
    expected = alignment_error_rate([strongest_links(w[0, 1]) for w in weights], right)
    assert found["cross 1.2"] == expected
    assert found["all"] == found["cross layer 1"]


def test_the_recorded_scores_follow_from_the_translations():
    record, texts = recorded_study(), stored_texts(RECORD)
    references = [load_corpus("tatoeba-en-de").test.target[: record["bleu_pairs"]]]
    again = {name: BLEU().corpus_score(found, references).score for name, found in texts.items()}
    assert again.keys() == record["bleu"].keys() | {"whole"}
    assert record["whole"]["BLEU"] == pytest.approx(again["whole"], abs=1e-4)
    for name, (lost, *_) in record["bleu"].items():
        assert lost == pytest.approx(again["whole"] - again[name], abs=1e-4)


def test_the_record_belongs_to_the_shipped_weights():
    record, corpus = recorded_study(), load_corpus("tatoeba-en-de")
    model = Translator.from_pretrained("tatoeba-en-de").model
    weights = locate("tatoeba-en-de").folder / "model.safetensors"
    assert record["model"]["sha256"] == sha256(weights), record["command"]
    assert record["corpus"]["sha256"] == corpus.checksum
    assert set(record["loss"]) == set(head_groups(model))
    assert all(
        low <= more <= high for f in record["loss"].values() for more, low, high in f.values()
    )
    names = {str(head) for head in heads_of(model.config)}
    assert set(record["roles"]) == names == set(record["untrained"]["roles"][0])
