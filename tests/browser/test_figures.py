"""Figures of notebooks have the page's background and the palette's colours, and enlarge."""

import io

import pytest
from PIL import Image

from transformer_book.palette import COLOURS, DARK_GROUND, on_dark

CHAPTER = "notebooks/02_attention.html"
FIGURE = "#fig-attention-capacity .drawn"
PICTURE = "#fig-one-lookup .drawn"


def as_rgb(colour):
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_figure_has_the_colours_of_the_page(visit, address, theme):
    found = visit(theme=theme)
    found.open(address + CHAPTER)
    picture = found.page.locator(PICTURE)
    picture.scroll_into_view_if_needed()
    pixels = Image.open(io.BytesIO(picture.screenshot())).convert("RGB")
    ground = as_rgb({"light": "#ffffff", "dark": DARK_GROUND}[theme])
    corners = {(x, y) for x in (1, pixels.width - 2) for y in (1, pixels.height - 2)}
    assert all(pixels.getpixel(corner) == ground for corner in corners)
    seen = {colour for _, colour in pixels.getcolors(pixels.width * pixels.height)}
    for name in ("blue", "vermilion", "green"):
        colour = COLOURS[name] if theme == "light" else on_dark(COLOURS[name])
        distances = (
            max(abs(a - b) for a, b in zip(as_rgb(colour), other, strict=True)) for other in seen
        )
        assert min(distances) <= 8, name  # thin lines mix with the ground
    assert found.errors == []


def test_a_dark_page_prints_light(visit, address):
    found = visit(theme="dark")
    found.open(address + CHAPTER)
    found.page.emulate_media(media="print")
    fill = "svg => getComputedStyle(svg.querySelector('text')).fill"
    assert (
        found.page.locator(f"{FIGURE} svg >> visible=true").first.evaluate(fill)
        == "rgb(74, 84, 93)"
    )


def test_ids_inside_figures_are_unique(visit, address):
    found = visit()
    found.open(address + CHAPTER)
    twice = found.page.evaluate(
        "() => { const ids = [...document.querySelectorAll('.drawn [id]')].map(e => e.id);"
        " return ids.length - new Set(ids).size; }"
    )
    assert twice == 0


@pytest.mark.parametrize(("width", "shown"), [(1280, "wide"), (390, "narrow")])
def test_letters_can_be_read_and_nothing_is_cut(visit, address, width, shown):
    found = visit(width=width)
    found.open(address + CHAPTER)
    for name in (FIGURE, PICTURE):
        drawn = found.page.locator(f"{name} svg >> visible=true")
        assert drawn.count() == 1 and drawn.get_attribute("data-width") == shown
        sizes = drawn.evaluate(
            """svg => [...svg.querySelectorAll("text")].map(text =>
                parseFloat(getComputedStyle(text).fontSize)
                * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width)"""
        )
        assert min(sizes) >= 8.5
        right = drawn.evaluate("svg => svg.getBoundingClientRect().right")
        assert right <= width


@pytest.mark.parametrize("width", [1280, 390])
def test_a_figure_enlarges_by_keyboard_and_returns(visit, address, width):
    found = visit(width=width)
    found.open(address + CHAPTER)
    page = found.page
    svg = page.locator(f"{FIGURE} svg >> visible=true")
    before = svg.bounding_box()["width"]
    assert svg.get_attribute("aria-label").startswith("Enlarge the figure. ")
    svg.focus()
    page.keyboard.press("Enter")
    large = page.locator("dialog[open] svg")
    assert large.bounding_box()["width"] > 1.3 * before
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    assert svg.bounding_box()["width"] == before
    assert svg.evaluate("svg => svg === document.activeElement")
    svg.click()
    assert page.locator("dialog[open]").count() == 1
    page.get_by_role("button", name="Close").click()
    assert page.locator("dialog[open]").count() == 0 and found.errors == []


def test_a_chapter_begins_with_its_place_in_the_architecture(visit, address):
    found = visit()
    found.open(address + CHAPTER)
    here = found.page.locator("figure.here")
    said = here.locator("figcaption").inner_text()
    assert said == "You are here: attention, in the encoder and the decoder"
    assert here.bounding_box()["y"] < 500
