"""An attention map is a table for every reader: pointer, keys, screen readers, a phone."""

import pytest
import torch

from transformer_book import AttentionMap

MAP = ".attention-map"
WORDS = ["The", "cat", "did", "not", "cross", "it"]


@pytest.fixture(scope="module")
def shown():
    """Two maps of six words."""
    weights = torch.rand(2, 6, 6, generator=torch.Generator().manual_seed(0)).softmax(dim=-1)
    return AttentionMap(weights, WORDS, WORDS, names=["one", "two"], row=3)


@pytest.fixture
def opened(visit, shown, alone):
    def make(width=1280, theme="light", **options):
        found = visit(width, theme, **options)
        found.page.set_content(alone(shown._repr_mimebundle_()["text/html"]))
        return found

    return make


def said(page):
    return page.locator(f"{MAP} output").inner_text()


def cells(page):
    return page.locator(f"{MAP} tbody td")


def focused(page):
    """Row and column of the cell with the focus."""
    return page.evaluate(
        "() => { const cell = document.activeElement; const line = cell.closest('tbody tr');"
        " return line && [line.rowIndex - 1, cell.cellIndex - 1]; }"
    )


def test_the_table_holds_the_weights_and_the_pointer_marks_one(opened, shown):
    page = opened().page
    page.get_by_role("combobox").select_option("1")
    texts = cells(page).all_text_contents()
    assert [float(text) for text in texts] == pytest.approx(shown.weights[1].ravel(), abs=0.0051)
    assert page.get_by_role("columnheader").all_inner_texts() == WORDS
    cells(page).nth(2 * 6 + 3).hover()
    assert f"Here: not {shown.weights[1, 2, 3]:.2f}" in said(page)


def test_one_tab_stop_and_the_arrow_keys_move_through_the_table(opened):
    page = opened().page
    page.keyboard.press("Tab")
    assert focused(page) == [3, 0]
    outline = "() => getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid", "a reader who uses keys must see where they are"
    for key, place in (("ArrowDown", [4, 0]), ("End", [4, 5]), ("ArrowRight", [4, 5])):
        page.keyboard.press(key)
        assert focused(page) == place
    assert said(page).startswith("Query “cross” looks most at")
    page.keyboard.press("Tab")
    assert focused(page) is None  # the menu


@pytest.mark.parametrize(("width", "theme"), [(390, "dark"), (1280, "light")])
def test_it_fits_and_is_accessible(opened, width, theme):
    found = opened(width, theme)
    assert found.page.evaluate("document.documentElement.scrollWidth") <= width
    assert found.breaches() == []


def test_without_scripts_there_is_a_picture_with_words(opened, shown):
    picture = opened(java_script_enabled=False).page.locator(f"{MAP} img")
    assert picture.is_visible() and picture.get_attribute("alt") == repr(shown)
