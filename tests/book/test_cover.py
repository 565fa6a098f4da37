"""The cover page shows the output of the shipped model, and is small enough for a phone."""

import base64
import json
import re

import numpy as np
import pytest

from book.make import cover
from transformer.data.corpora import load_corpus

KINDS = r"<img.*?>|<script type=\"application/json\">.*?</script>|attention-map-\w{10}"


@pytest.fixture(scope="module")
def fresh():
    return {name: text.rstrip("\n") + "\n" for name, text in cover.pieces().items()}


def stored(name):
    return (cover.FOLDER / name).read_text(encoding="utf-8")


def map_of(html):
    data = json.loads(re.search(r'<script type="application/json">(.*?)</script>', html, re.S)[1])
    weights = np.frombuffer(base64.b64decode(data.pop("weights")), dtype="<u2") / 65535
    return data, weights.reshape(len(data["names"]), len(data["queries"]), len(data["keys"]))


def test_the_pieces_are_up_to_date(fresh):
    """After a change of the model or of a figure's script: python -m book.make cover."""
    assert {path.name for path in cover.FOLDER.iterdir()} == fresh.keys()
    assert sum(len(stored(name)) for name in fresh) < 150_000
    for name in ("translations.txt", "figure_1.html"):
        assert stored(name) == fresh[name]
    old, new = stored("attention.html"), fresh["attention.html"]
    (before, weights), (after, made) = map_of(old), map_of(new)
    np.testing.assert_allclose(weights, made, atol=0.003)  # the last digit depends on the machine
    assert before == after
    assert re.sub(KINDS, "", old, flags=re.S) == re.sub(KINDS, "", new, flags=re.S)


def test_the_map_shows_what_the_page_says():
    data, weights = map_of(stored("attention.html"))
    for german, english in dict(gesehen="seen", Garten="garden", schönen="beautiful").items():
        assert data["keys"][weights[0, data["queries"].index(german)].argmax()] == english


def test_no_sentence_is_in_the_training_text():
    known = {text.lower().strip() for text in load_corpus("tatoeba-en-de").train.source}
    assert not {text.lower() for text in (*cover.SENTENCES, cover.LOOKED_INTO)} & known
