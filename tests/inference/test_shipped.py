"""The shipped model translates offline; batch size, order, padding and cache change nothing."""

import pytest
import torch

from transformer.data.corpora import load_corpus
from transformer.inference.translator import Translator
from transformer.saving.locate import SHIPPED_FOLDER


@pytest.fixture(scope="module")
def translator(unchecked):
    return Translator.from_pretrained("tatoeba-en-de")


@pytest.fixture(scope="module")
def sentences():
    """Of 2 words to some 40, in the order of the corpus."""
    texts = load_corpus("tatoeba-en-de").test.source
    found = texts[::500]
    return [found[0], *sorted(texts, key=len)[-2:], *found[1:]]


@pytest.fixture(scope="module")
def expected(translator, sentences):
    """Each sentence alone."""
    return {beam: [translator.translate(s, beam_size=beam) for s in sentences] for beam in (1, 4)}


@pytest.mark.parametrize(
    "name, wanted",
    [
        (
            "tatoeba-en-de",
            {
                "Where is the train station?": "Wo ist der Bahnhof?",
                "I have nothing to do with the crime.": (
                    "Ich habe mit dem Verbrechen nichts zu tun."
                ),
            },
        ),
        ("tatoeba-en-fr", {"Where is the train station?": "Où est la gare\u202f?"}),
    ],
)
def test_it_is_small_and_translates_offline(name, wanted, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert (SHIPPED_FOLDER / name / "model.safetensors").stat().st_size < 13_000_000
    assert Translator.from_pretrained(name)([*wanted]) == [*wanted.values()]


BEAMS = pytest.mark.parametrize("beam_size", [1, 4])


@BEAMS
def test_batch_size_and_order(translator, sentences, expected, beam_size):
    assert len(set(expected[beam_size])) == len(sentences)
    found = translator.translate(sentences, beam_size=beam_size, batch_size=64)
    assert found == expected[beam_size]
    order = torch.randperm(len(sentences), generator=torch.Generator().manual_seed(0)).tolist()
    found = translator.translate([sentences[i] for i in order], beam_size=beam_size, batch_size=4)
    assert found == [expected[beam_size][i] for i in order]
