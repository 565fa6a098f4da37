"""Figures of notebooks stand on the page's own ground, light or dark, in the palette's colours."""

import io

import pytest
from PIL import Image

from transformer.book.palette import COLOURS, DARK_GROUND, on_dark

CHAPTER = "notebooks/03_additive_or_dot_product.html"  # lines in three colours


@pytest.fixture
def shown(visit, address):
    def take(theme, **options):
        found = visit(theme=theme, **options)
        found.open(address + CHAPTER)
        picture = found.page.locator("figure img").first
        picture.scroll_into_view_if_needed()
        pixels = Image.open(io.BytesIO(picture.screenshot())).convert("RGB")
        ground = found.page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert found.errors == []
        return pixels, ground

    return take


def as_rgb(colour):
    return tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5))


def count(pixels, colour, tolerance):
    wanted = as_rgb(colour)
    return sum(
        number
        for number, found in pixels.getcolors(pixels.width * pixels.height)
        if all(abs(a - b) <= tolerance for a, b in zip(found, wanted, strict=True))
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_there_is_no_box_around_a_figure(shown, theme):
    pixels, ground = shown(theme)
    page = tuple(int(part) for part in ground[4:-1].split(","))
    assert page == as_rgb({"light": "#ffffff", "dark": DARK_GROUND}[theme])
    corners = {(x, y) for x in (1, pixels.width - 2) for y in (1, pixels.height - 2)}
    assert all(
        abs(a - b) <= 1
        for corner in corners
        for a, b in zip(pixels.getpixel(corner), page, strict=True)
    )


@pytest.mark.parametrize("name", ["blue", "vermilion", "green"])
def test_the_browser_makes_of_a_colour_what_the_palette_says(shown, name):
    for theme, colour in (("light", COLOURS[name]), ("dark", on_dark(COLOURS[name]))):
        pixels, _ = shown(theme)
        assert count(pixels, colour, 3) > 200, (theme, colour)
