"""What the cover page shows is what the shipped model does, and small enough for a phone."""

import base64
import json
import re

import make_cover
import numpy as np
import pytest

from transformer.data.corpora import load_corpus

KINDS = r"<img.*?>|<script type=\"application/json\">.*?</script>|attention-map-\w{10}"


@pytest.fixture(scope="module")
def fresh():
    return make_cover.pieces()


def stored(name):
    return (make_cover.FOLDER / name).read_text(encoding="utf-8")


def data_of(html):
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', html, re.S)[1])


def weights_of(data):
    values = np.frombuffer(base64.b64decode(data["weights"]), dtype="<u2") / 65535
    return values.reshape(len(data["names"]), len(data["queries"]), len(data["keys"]))


def test_the_pieces_are_there_and_no_others(fresh):
    """After a change of the model or of a figure's script: python tools/make_cover.py."""
    assert {path.name for path in make_cover.FOLDER.iterdir()} == fresh.keys()
    intro = (make_cover.ROOT / "book" / "intro.md").read_text(encoding="utf-8")
    assert all(f"_cover/{name}" in intro for name in fresh)
    assert sum(len(stored(name)) for name in fresh) < 150_000


@pytest.mark.parametrize("name", ["translations.txt", "figure_1.html"])
def test_text_and_figure_1_are_as_they_are_made(fresh, name):
    assert stored(name) == fresh[name].rstrip("\n") + "\n"


def test_the_map_is_of_the_model(fresh):
    """Weights may differ in the last digit between machines, and so does the picture."""
    old, new = stored("attention.html"), fresh["attention.html"].rstrip("\n") + "\n"
    before, after = data_of(old), data_of(new)
    np.testing.assert_allclose(weights_of(before), weights_of(after), atol=0.003)
    assert before | {"weights": ""} == after | {"weights": ""}
    assert re.sub(KINDS, "", old, flags=re.S) == re.sub(KINDS, "", new, flags=re.S)
    assert 'src="data:image/png;base64,iVBOR' in old


def test_the_map_shows_what_the_page_says():
    data = data_of(stored("attention.html"))
    first = weights_of(data)[0]
    for german, english in dict(gesehen="seen", Garten="garden", schönen="beautiful").items():
        assert data["keys"][first[data["queries"].index(german)].argmax()] == english
    assert data["queries"][data["row"]] == "gesehen" and data["names"][0].startswith("layer 3")
    alt = re.search(r'<img alt="(.*?)"', stored("attention.html"))[1]
    assert "Garten looks at garden" in alt and "third English word" not in alt


def test_no_sentence_is_in_the_training_text():
    known = {text.lower().strip() for text in load_corpus("tatoeba-en-de").train.source}
    assert not {text.lower() for text in (*make_cover.SENTENCES, make_cover.LOOKED_INTO)} & known


def test_the_links_of_figure_1_begin_where_the_page_is():
    links = re.findall(r'href="([^"]+)"', stored("figure_1.html"))
    assert len(links) > 20
    for link in links:
        page = (make_cover.ROOT / "book" / link.partition("#")[0]).resolve()
        assert page.with_suffix(".ipynb").exists() or page.with_suffix(".md").exists(), link
