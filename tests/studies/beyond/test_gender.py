"""Occupations, their German forms, and what an English sentence says about gender."""

import pytest

from transformer.data.parallel import Split
from transformer_book.studies.other_tasks.gender import (
    OCCUPATIONS,
    is_feminine,
    named_pairs,
    said_of,
)


@pytest.mark.parametrize(
    ("occupation", "german", "feminine"),
    [
        ("teacher", "Sie ist Lehrerin.", True),
        ("teacher", "Das Buch des Lehrers ist neu.", False),
        ("teacher", "Er ist mein Englischlehrer.", False),
        ("teacher", "Sie ist die neue Mathematiklehrerin.", True),
        ("teacher", "Der Lehrer kennt die Lehrerin.", None),
        ("teacher", "Er unterrichtet.", None),
        ("student", "Sie ist Schülerin.", True),
        ("student", "Ich kenne den Studenten.", False),
        ("doctor", "Maria ist Ärztin.", True),
        ("doctor", "Ich habe einen Arzttermin.", None),
        ("nurse", "Meine Schwester ist Krankenpfleger.", False),
    ],
)
def test_the_form_of_an_occupation(occupation, german, feminine):
    assert is_feminine(occupation, german) is feminine


@pytest.mark.parametrize(
    ("english", "said"),
    [
        ("I am a teacher.", "neither"),
        ("She is a teacher.", "a woman"),
        ("Tom is a teacher.", "a man"),
        ("His sister is a teacher.", "neither"),
        ("The other teacher sings.", "neither"),
    ],
)
def test_what_the_english_says(english, said):
    assert said_of(english) == said


def test_pairs_with_one_occupation():
    split = Split(
        ["She is a doctor.", "A doctor and a nurse.", "We sleep.", "Teachers sleep."],
        [
            "Sie ist Ärztin.",
            "Ein Arzt und eine Krankenschwester.",
            "Wir schlafen.",
            "Sie schlafen.",
        ],
    )
    (pair,) = named_pairs(split)
    assert (pair.occupation, pair.said, pair.feminine) == ("doctor", "a woman", True)


def test_no_form_belongs_to_both_genders():
    for noun, (masculine, feminine) in OCCUPATIONS.items():
        assert all(is_feminine(noun, f"{form}.") is False for form in masculine)
        assert all(is_feminine(noun, f"{form}.") is True for form in feminine)
