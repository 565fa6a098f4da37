"""The pictures that chapters open with: whole, legible on a phone, and true to what they say."""

import inspect
import json
import pkgutil
import re
from importlib import import_module, resources

import pytest
from drawn import require_equal_variants, words

from transformer import Translator
from transformer_book import picture, pictures
from transformer_book.palette import ROLES, VARIABLES
from transformer_book.pictures import attention

FOLDER = pkgutil.walk_packages(pictures.__path__, f"{pictures.__name__}.")
MODULES = [import_module(each.name) for each in FOLDER]
PICTURES = {
    name: make
    for module in MODULES
    for name, make in inspect.getmembers(module, inspect.isfunction)
    if make.__module__ == module.__name__ and not name.startswith("_")
    # Those that draw a record have a test of their own.
    if all(p.default is not p.empty for p in inspect.signature(make).parameters.values())
}


@pytest.mark.parametrize("make", PICTURES.values(), ids=PICTURES)
def test_both_variants_show_the_same_words_within_their_frames(make):
    require_equal_variants(make())


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
    seen = Translator.from_pretrained("tatoeba-en-de").attention(attention.SENTENCE)
    fourth = seen.encoder[0][3][[token.strip("▁") for token in seen.source_tokens].index("it")]
    shown = " ".join(words(attention.one_lookup().drawn[0]))
    assert " ".join(f"{weight:.2f}" for weight in fourth) in shown
