"""The colours: legible on light and dark pages, and each means one thing."""

import re
from pathlib import Path

import numpy as np
import pytest

from transformer_book.palette import (
    COLOURS,
    DARK_GROUND,
    INK,
    PALE,
    SOFT,
    css_variables,
    dark_pixels,
    on_dark,
)

ASSETS = Path(__file__).resolve().parents[2] / "book" / "transformer_book" / "widgets"
PAGES = {"light": (lambda colour: colour, "#ffffff"), "dark": (on_dark, DARK_GROUND)}


def contrast(one, other):
    """The ratio that WCAG asks for."""
    lights = []
    for colour in (one, other):
        c = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
        lights.append(float(linear @ [0.2126, 0.7152, 0.0722]))
    return (max(lights) + 0.05) / (min(lights) + 0.05)


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("name", [*COLOURS, "ink", "soft"])
def test_small_text_in_a_colour_can_be_read(name, page):
    shown, ground = PAGES[page]
    colour = {**COLOURS, "ink": INK, "soft": SOFT}[name]
    assert contrast(shown(colour), ground) >= 4.5
    assert contrast(shown(colour), shown(PALE)) >= 4


def test_pixels_turn_as_colours_do():
    pixels = np.array([[[0, 114, 178, 255], [255, 255, 255, 128]]], dtype=np.uint8)
    turned = dark_pixels(pixels)[0]
    assert [f"#{r:02x}{g:02x}{b:02x}" for r, g, b, _ in turned] == [on_dark("#0072b2"), DARK_GROUND]
    assert turned[:, 3].tolist() == [255, 128]


@pytest.mark.parametrize("path", sorted(ASSETS.glob("*-*.*s*")), ids=lambda path: path.name)
def test_explorers_take_their_colours_from_the_palette(path):
    """So a colour means the same in all of them."""
    text = path.read_text()
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b|rgba?\(", re.sub(r"//.*", "", text))
    known = set(re.findall(r"--([a-z]+):", " ".join(css_variables())))
    known |= {"rule", "ground", "well"}  # surfaces of the panel itself
    assert set(re.findall(r"var\(--([a-z]+)\)", text)) <= known
