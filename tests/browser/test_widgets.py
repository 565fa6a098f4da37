"""What can be played with answers to pointer, keys, theme and a narrow screen, and falls back."""

import pytest

CHAPTER = "notebooks/02_attention.html"
MAP = ".attention-map"


@pytest.fixture
def opened(visit, address):
    def make(width=1280, theme="light", **options):
        found = visit(width, theme, **options)
        found.open(address + CHAPTER)
        found.page.locator(f"{MAP} canvas").first.scroll_into_view_if_needed()
        return found.page

    return make


def said(page):
    return page.locator(f"{MAP} output").first.inner_text()


def pixels(page):
    return page.locator(f"{MAP} canvas").first.evaluate("canvas => canvas.toDataURL()")


def test_the_pointer_moves_the_mark(opened):
    page = opened()
    box, before, drawn = (
        page.locator(f"{MAP} canvas").first.bounding_box(),
        said(page),
        pixels(page),
    )
    page.mouse.move(box["x"] + 0.8 * box["width"], box["y"] + 0.9 * box["height"])
    assert said(page) != before and "Here:" in said(page)
    assert pixels(page) != drawn


def test_the_arrow_keys_do_as_much(opened):
    page = opened()
    canvas = page.locator(f"{MAP} canvas").first
    canvas.focus()
    first = said(page)
    page.keyboard.press("ArrowDown")
    second = said(page)
    page.keyboard.press("ArrowRight")
    assert first != second != said(page) and "Here:" in said(page)
    page.keyboard.press("ArrowUp")
    assert said(page).split("looks")[0] == first.split("looks")[0]
    outline = canvas.evaluate("canvas => getComputedStyle(canvas).outlineStyle")
    assert outline != "none", "a reader who uses keys must see where they are"


def test_the_map_can_be_reached_by_tab_alone(opened):
    page = opened()
    page.locator(f"{MAP}").first.evaluate("e => e.previousElementSibling?.focus()")
    for _ in range(400):
        page.keyboard.press("Tab")
        if page.evaluate("() => document.activeElement.closest('.attention-map') !== null"):
            return
    pytest.fail("400 tabs did not reach the map")


def test_dark_and_light_are_drawn_in_the_pages_colours(opened):
    assert pixels(opened(theme="light")) != pixels(opened(theme="dark"))


def test_it_fits_a_phone(opened):
    page = opened(width=390)
    box = page.locator(f"{MAP} canvas").first.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    page.touchscreen.tap(box["x"] + 0.8 * box["width"], box["y"] + 0.9 * box["height"])
    assert "Here:" in said(page)


def test_without_scripts_there_is_a_picture_with_words(visit, address):
    found = visit(java_script_enabled=False)
    found.page.goto(address + CHAPTER)
    picture = found.page.locator(f"{MAP} img").first
    assert picture.is_visible() and len(picture.get_attribute("alt")) > 40
    assert picture.evaluate("img => img.naturalWidth") > 100
