"""Senses of a word: examples, how well features tell them apart, and the loss of a German word."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from transformer.data.corpora.download import sha256
from transformer.data.tokenizer import Tokenizer
from transformer.inference.translator import Translator
from transformer.model.config import TransformerConfig
from transformer.model.pretrained import locate
from transformer.model.transformer import Transformer
from transformer.recipes.record import read_record
from transformer_book.studies.what_heads_learn import senses
from transformer_book.studies.what_heads_learn.ablation import Head, edited, silent
from transformer_book.studies.what_heads_learn.questions import (
    RECORD,
    explanation,
    heads_dict,
)
from transformer_book.studies.what_heads_learn.study import recorded_study

PAIRS = [
    ("turn right here", "biege hier rechts ab"),
    ("you are right", "du hast recht"),
    ("you are right", "du hast recht"),
    ("right or right", "recht oder recht"),
    ("the bright one", "recht hell"),
    ("turn right, right?", "rechts"),
    ("it is all right", "es ist gut"),
    ("is it right", "ist das richtig und recht"),
]


@pytest.fixture(scope="module")
def translator():
    tokenizer = Tokenizer.train([" ".join(pair) for pair in PAIRS] * 5, 300)
    torch.manual_seed(0)
    config = TransformerConfig(300, d_model=8, d_ff=8, num_heads=2, num_layers=1)
    return Translator(Transformer(config), tokenizer)


def test_examples_have_the_word_once_and_one_sense():
    found = senses.examples("right", PAIRS)
    assert [(e.source, e.sense, e.place) for e in found] == [
        ("you are right", 1, 2),
        ("turn right here", 0, 2),
    ]
    assert senses.examples("right", PAIRS, most=0) == []


def test_senses_are_told_apart_by_the_nearer_mean():
    random = np.random.default_rng(0)
    labels = np.arange(60) % 3 == 0
    features = random.normal(size=(60, 2, 5))
    features[:, 1] += 2 * labels[:, None]
    rates = senses.told_apart(features, labels)
    assert rates.shape == (2,) and rates[1] > 0.95
    luck = senses.told_apart(features, senses.shuffles(labels, 200))
    assert luck.shape == (200, 2) and abs(luck.mean() - 0.5) < 0.03
    # By loops, without the example itself.
    x = (features[:, 0] - features[:, 0].mean(0)) / features[:, 0].std(0)
    right = {True: [], False: []}
    for i, label in enumerate(labels):
        rest = np.arange(60) != i
        means = {s: x[rest & (labels == s)].mean(0) for s in (True, False)}
        nearer = min(means, key=lambda s: np.linalg.norm(x[i] - means[s]))
        right[bool(label)].append(nearer == label)
    assert rates[0] == pytest.approx(np.mean([np.mean(r) for r in right.values()]))


def test_features_are_those_at_the_word(translator):
    found = senses.examples("right", PAIRS)[:1]
    written, attention = senses.at_the_word(translator, "right", found)
    assert written.shape == (1, 2, 4) and attention.shape == (1, 2, 8)
    maps = translator.attention("you are right", "").encoder[0]
    place = maps.shape[-1] - 2  # the last token of the last word, or its only one
    labels = translator.tokenizer.tokens(translator.tokenizer.encode("you are right"))
    assert labels[-1] == "▁right"
    np.testing.assert_allclose(attention[0, :, senses.NEAR], maps[:, place, place], rtol=1e-5)
    np.testing.assert_allclose(attention[0, :, -1], maps[:, place, -1], rtol=1e-5)
    assert not attention[0, :, senses.NEAR + 1 : -1].any()  # no tokens behind the last
    layer = translator.model.encoder[0].self_attention
    ids = torch.tensor([[*translator.tokenizer.encode("you are right"), 2]])
    with torch.no_grad():
        x = translator.model.positions(translator.model.embedding(ids))
        value = layer.value_projection(x)[0].view(-1, 2, 4)
        expected = torch.einsum("hs,shd->hd", torch.tensor(maps[:, place]).float(), value)
    np.testing.assert_allclose(written[0], expected, atol=1e-5)


def test_losses_are_those_of_the_german_word(translator):
    found = senses.examples("right", PAIRS)
    head, model = Head("encoder", 0, 1), translator.model
    losses = senses.word_losses(translator, found, [None, head])
    assert senses.word_losses(translator, found).shape == (2, 1 + 6)
    tokenizer = translator.tokenizer
    for example, row in zip(found, losses, strict=True):
        ids, out = (tokenizer.encode(text) for text in (example.source, example.target))
        own = [k for k, t in enumerate(tokenizer.tokens(out)) if "rech" in t]
        for edits, value in (({}, row[0]), ({head: silent}, row[1])):
            with torch.no_grad(), edited(model, edits):
                logits = model(torch.tensor([[*ids, 2]]), torch.tensor([[1, *out]]))[0]
            each = F.cross_entropy(logits, torch.tensor([*out, 2]), reduction="none")
            first = own[0]
            assert value >= each[first].item() - 1e-4
            if len(own) == 1 and tokenizer.tokens(out)[first].strip("▁") in ("recht", "rechts"):
                assert value == pytest.approx(each[first].item(), abs=1e-4)
    assert (losses[:, 0] != losses[:, 1]).all()


def test_selective_is_welch_t():
    added = np.array([[1.0], [2.0], [3.0], [7.0], [9.0]])
    labels = np.array([False, False, False, True, True])
    expected = (8 - 2) / np.sqrt(2 / 2 + 1 / 3)
    assert senses.selective(added, labels) == pytest.approx([expected])
    both = senses.selective(added, np.stack([labels, ~labels]))
    assert both[:, 0] == pytest.approx([expected, -expected])


def test_agreement_of_every_view(translator):
    found = explanation(translator, PAIRS[:2])
    assert found["sentences"] == 2
    sizes = [len(translator.tokenizer.encode(german)) + 1 for _, german in PAIRS[:2]]
    assert found["predictions"] == sum(sizes)
    views = {"layer 1", "all heads", "gradient", "place", "cross 1.1", "cross 1.2"}
    assert set(found["agreement"]) == views
    assert all(len(of["vector"]) == 2 for of in found["agreement"].values())
    assert heads_dict(np.arange(2).reshape(1, 2)) == {"encoder 1.1": 0.0, "encoder 1.2": 1.0}


def test_the_record_belongs_to_the_shipped_weights():
    record = read_record(RECORD)
    weights = locate("tatoeba-en-de").folder / "model.safetensors"
    assert record["model"]["sha256"] == sha256(weights), record["command"]
    assert record["corpus"]["sha256"] == recorded_study()["corpus"]["sha256"]
    assert set(record["senses"]) == set(senses.SENSES)
    for of in record["senses"].values():
        assert ("output" in of) == (min(of["sentences"]) >= senses.LEAST)
