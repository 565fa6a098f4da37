"""The start page shows what the shipped models do, and what its text says of them holds."""

from generated import cover

from transformer.data.corpora import load_corpus
from transformer.inference.translator import Translator


def test_the_page_is_small_and_its_mistakes_are_there():
    made = cover.texts()
    assert sum(map(len, made.values())) < 150_000
    for mistake in ("Achtung", "tous les soir ", "si je le savais", "Attention est"):
        assert mistake in made["translations"]
    assert 'href="../notebooks/02_' in made["figure-1"]


def test_the_map_shows_what_the_page_says():
    drawn = cover.attention_map(Translator.from_pretrained("tatoeba-en-de"))
    for german, english in dict(gesehen="seen", Garten="garden", schönen="beautiful").items():
        row = drawn.weights[0, drawn.queries.index(german)]
        assert drawn.keys[row.argmax()] == english


def test_no_sentence_is_in_the_training_text():
    known = {text.lower().strip() for text in load_corpus("tatoeba-en-de").train.source}
    assert not {text.lower() for text in (*cover.SENTENCES, cover.LOOKED_INTO)} & known
