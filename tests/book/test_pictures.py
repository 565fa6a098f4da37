"""The pictures that chapters open with: whole, legible on a phone, and true to what they say."""

import inspect
import json
import pkgutil
import re
from html import unescape
from importlib import import_module, resources

import numpy as np
import pytest

from transformer.data import toy
from transformer_book import picture, pictures
from transformer_book.palette import ROLES, VARIABLES
from transformer_book.pictures import attention
from transformer_book.pictures.after.full_model import as_it_learns, kept_words
from transformer_book.toy_translator import trained, weights_at_pronoun

FOLDER = pkgutil.walk_packages(pictures.__path__, f"{pictures.__name__}.")
MODULES = [import_module(each.name) for each in FOLDER]
PICTURES = {
    name: make
    for module in MODULES
    for name, make in inspect.getmembers(module, inspect.isfunction)
    if make.__module__ == module.__name__ and not name.startswith("_")
    # A record is drawn by its chapter.
    if all(p.default is not p.empty for p in inspect.signature(make).parameters.values())
}
TEXTS = ["", "liest " * 40, "Die die Katze", "Die Katze", "Die </script>", "Die Katze schläft."]
PICTURES["as_it_learns"] = lambda: as_it_learns(
    [dict(step=50 * i, translations=[text.strip()]) for i, text in enumerate(TEXTS)],
    "The cat sleeps.",
)


def words(drawing):
    return [unescape(text) for text in re.findall(r"<text[^>]*>([^<]+)</text>", drawing.svg())]


@pytest.mark.parametrize("make", PICTURES.values(), ids=PICTURES)
def test_both_variants_show_the_same_words_within_their_frames(make):
    wide, narrow = make().drawn
    assert sorted(words(wide)) == sorted(words(narrow))
    assert wide.width <= 688 and narrow.width <= 380
    for drawing in (wide, narrow):
        box = r'<rect x="([\d.-]+)" y="([\d.-]+)" width="([\d.]+)" height="([\d.]+)"'
        for x, y, width, height in np.array(re.findall(box, drawing.svg()), dtype=float).tolist():
            assert x >= 0 and x + width <= drawing.width
            assert y >= 0 and y + height <= drawing.height


STORED = json.loads(resources.files(pictures).joinpath("svg/descriptions.json").read_text("utf-8"))


@pytest.mark.parametrize("name", STORED)
def test_a_stored_picture_shows_the_same_words_twice_in_the_colours_of_the_page(name):
    shown = picture(name)
    wide, narrow = (
        re.findall(r"<text[^>]*>([^<].*?)</text>", svg) for svg in (shown.wide, shown.narrow)
    )
    assert sorted(wide) == sorted(narrow) and repr(shown) == STORED[name]
    fallback = {name: colour for colour, name in VARIABLES.items()} | ROLES
    painted = set(re.findall(r"var\(--([a-z]+), (#\w+)\)", shown.wide + shown.narrow))
    assert painted and painted <= fallback.items()


def test_an_unknown_picture_is_refused():
    with pytest.raises(ValueError, match="zoom.*got 'zom'"):
        picture("zom")


def test_the_numbers_of_the_lookup_are_the_models():
    looks = weights_at_pronoun(trained(), toy.TIRED)["decoder.1"][attention.HEAD]
    shown = " ".join(words(attention.one_lookup().drawn[0]))
    assert " ".join(f"{weight:.2f}" for weight in looks) in shown


def test_kept_words_are_a_longest_common_subsequence():
    last = "Die Katze schläft, weil sie müde ist."
    for text, kept in (
        ("die KATZE, sie müde", ["die", "KATZE,", "sie", "müde"]),
        ("ist Die , Katze", ["Die", "Katze"]),
        ("", []),
    ):
        assert [word for word, is_kept in kept_words(text, last) if is_kept] == kept
