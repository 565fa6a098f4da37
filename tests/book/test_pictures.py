"""The pictures that chapters open with: whole, legible on a phone, and true to what they say."""

import inspect
import pkgutil
import re
from importlib import import_module

import pytest
from drawn import require_equal_variants, words

from transformer import Translator
from transformer_book import pictures
from transformer_book.pictures import attention
from transformer_book.pictures.why_attend import three_paths

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


def test_the_paths_are_as_long_as_the_words_are_apart():
    picture = three_paths().drawn[0]
    assert {"6 steps", "6 layers", "1 step"} <= set(words(picture))
    bold = re.findall(r'stroke-width="(?:2.5|3)"', picture.svg())
    assert len(bold) == 6 + 6 + 1


def test_the_numbers_of_the_lookup_are_the_models():
    seen = Translator.from_pretrained("tatoeba-en-de").attention(attention.SENTENCE)
    fourth = seen.encoder[0][3][[token.strip("▁") for token in seen.source_tokens].index("it")]
    shown = " ".join(words(attention.one_lookup().drawn[0]))
    assert " ".join(f"{weight:.2f}" for weight in fourth) in shown
