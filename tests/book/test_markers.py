"""Marked places of a page are written anew, and nothing else of it."""

import pytest

from transformer.book.markers import fill_in, marked

PAGE = (
    "* - <!-- choice one -->old\n  text<!-- end -->\n* - <!-- sum two -->3<!-- end --> <!-- b -->"
)


def test_a_place_is_written_anew_and_only_the_place():
    filled = fill_in(PAGE, "choice", {"one": "new", "two": "other"})
    assert filled == PAGE.replace("old\n  text", "new")
    assert fill_in(filled, "choice", {"one": "new"}) == filled


def test_the_names_are_listed_by_kind():
    assert marked(PAGE, "choice") == ["one"] and marked(PAGE, "sum") == ["two"]


def test_a_name_without_a_text_is_an_error():
    with pytest.raises(ValueError, match="no choice 'one'; there are two"):
        fill_in(PAGE, "choice", {"two": "2"})
