"""Figures of notebooks have the page's background and the palette's colours, and enlarge."""

import io

import pytest
from PIL import Image

from transformer_book.palette import COLOURS, DARK_GROUND, on_dark

CHAPTER = "notebooks/02_attention.html"
FIGURE = "#fig-attention-capacity .drawn"


def as_rgb(colour):
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_figure_has_the_colours_of_the_page(visit, address, theme):
    found = visit(theme=theme)
    found.open(address + CHAPTER)
    picture = found.page.locator("#fig-scaled-dot-product .drawn")
    picture.scroll_into_view_if_needed()
    pixels = Image.open(io.BytesIO(picture.screenshot())).convert("RGB")
    assert pixels.getpixel((1, 1)) == as_rgb({"light": "#ffffff", "dark": DARK_GROUND}[theme])
    seen = {colour for _, colour in pixels.getcolors(pixels.width * pixels.height)}
    for name in ("blue", "vermilion", "green"):
        colour = as_rgb(COLOURS[name] if theme == "light" else on_dark(COLOURS[name]))
        nearest = min(max(abs(a - b) for a, b in zip(colour, c, strict=True)) for c in seen)
        assert nearest <= 8, name  # thin lines mix with the ground


@pytest.mark.parametrize(("width", "shown"), [(1280, "wide"), (390, "narrow")])
def test_a_figure_can_be_read_enlarges_by_keyboard_and_returns(visit, address, width, shown):
    found = visit(width=width)
    found.open(address + CHAPTER)
    page = found.page
    svg = page.locator(f"{FIGURE} svg >> visible=true")
    assert svg.get_attribute("data-width") == shown
    sizes = svg.evaluate(
        """svg => [...svg.querySelectorAll("text")].map(text =>
            parseFloat(getComputedStyle(text).fontSize)
            * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width)"""
    )
    assert min(sizes) >= 8.5
    before = svg.bounding_box()["width"]
    svg.focus()
    page.keyboard.press("Enter")
    assert page.locator("dialog[open] svg").bounding_box()["width"] > 1.3 * before
    page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 0
    assert svg.bounding_box()["width"] == before
    assert svg.evaluate("svg => svg === document.activeElement")
    svg.click()
    page.get_by_role("button", name="Close").click()
    assert page.locator("dialog[open]").count() == 0 and found.errors == []
