"""An attention map is a table for every reader: pointer, keys, screen readers, a phone."""

import json
import re

import pytest
import torch
from axe_playwright_python.sync_playwright import Axe

from transformer_book import AttentionMap

MAP = ".attention-map"
WORDS = [
    "The",
    "animal",
    "did",
    "not",
    "cross",
    "the",
    "street",
    "because",
    "it",
    "was",
    "too",
    "tired",
]


@pytest.fixture(scope="module")
def shown():
    """Two maps of twelve words; each row has one large weight."""
    scores = torch.eye(12).mul(3).roll(2, 0) + torch.rand(12, 12)
    weights = torch.stack([scores, scores.flip(1)]).softmax(dim=-1)
    return AttentionMap(weights, WORDS, WORDS, names=["one", "two"], row=3)


@pytest.fixture
def opened(visit, shown, alone):
    def make(width=1280, theme="light", **options):
        found = visit(width, theme, **options)
        html = shown._repr_mimebundle_()["text/html"]
        found.page.set_content(alone(html))
        return found.page

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


def test_the_table_holds_the_weights_and_names_its_rows_and_columns(opened, shown):
    page = opened()
    for place, weights in enumerate(shown.weights):
        page.get_by_role("combobox").select_option(str(place))
        texts = cells(page).all_text_contents()
        assert [float(text) for text in texts] == pytest.approx(weights.ravel(), abs=0.0051)
    grid = page.get_by_role("grid")
    assert grid.get_by_role("columnheader").all_inner_texts() == WORDS
    assert grid.get_by_role("rowheader").all_inner_texts() == WORDS


def test_one_tab_stop_and_the_arrow_keys_move_through_the_table(opened):
    page = opened()
    assert page.locator(f"{MAP} td[tabindex='0']").count() == 1
    page.keyboard.press("Tab")
    assert focused(page) == [3, 0]
    outline = "() => getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid", "a reader who uses keys must see where they are"
    for keys, place in (
        ("ArrowDown ArrowRight ArrowRight", [4, 2]),
        ("End", [4, 11]),
        ("ArrowRight", [4, 11]),
        ("Control+Home", [0, 0]),
        ("ArrowUp ArrowLeft", [0, 0]),
    ):
        for key in keys.split():
            page.keyboard.press(key)
        assert focused(page) == place
    assert said(page).startswith("Query “The” looks most at") and "Here: The" in said(page)
    page.keyboard.press("Tab")
    assert focused(page) is None  # the menu
    page.keyboard.press("Shift+Tab")
    assert focused(page) == [0, 0]


def test_a_screen_reader_hears_the_row_once_and_the_cell_by_itself(opened):
    output = opened().locator(f"{MAP} output")
    assert output.get_attribute("aria-live") == "polite"
    assert output.locator("span").get_attribute("aria-hidden") == "true"


def test_the_pointer_moves_the_mark(opened, shown):
    page = opened()
    cells(page).nth(5 * 12 + 7).hover()
    assert f"Here: because {shown.weights[0, 5, 7]:.2f}" in said(page)
    assert page.locator(f"{MAP} td.here").count() == 1
    assert page.locator(f"{MAP} th.lit").inner_text() == "because"


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_and_is_accessible(opened, width, theme):
    page = opened(width, theme)
    box = page.locator(f"{MAP} table").bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= width
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if width == 390:
        cells(page).nth(30).tap()
        assert "Here:" in said(page)
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    found = Axe().run(page, options={"runOnly": tags}).response["violations"]
    assert not found, json.dumps([(rule["id"], rule["nodes"][0]["html"]) for rule in found])
    # A dark page has dark cells: the strongest colour of the palette is for the largest weight.
    colour = cells(page).first.evaluate("e => getComputedStyle(e).backgroundColor")
    red, green, blue = map(float, re.findall(r"[\d.]+", colour))  # color(srgb 0 0.5 1)
    assert colour.startswith("color(srgb ") and (red + green + blue > 1.5) == (theme == "light")


def test_without_scripts_there_is_a_picture_with_words(opened, shown):
    picture = opened(java_script_enabled=False).locator(f"{MAP} img")
    assert picture.is_visible() and picture.get_attribute("alt") == repr(shown)


@pytest.mark.parametrize("page", ["notebooks/02_attention.html", "book/intro.html"])
def test_a_page_has_a_map(visit, address, page):
    found = visit()
    found.open(address + page)
    assert found.page.locator(f"{MAP} [role=grid]").count() == 1 and found.errors == []
