"""The colours: legible on light and dark pages, and distinct for colour-blind readers."""

import itertools
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

ROOT = Path(__file__).resolve().parents[2]
ASSETS = ROOT / "book" / "transformer_book" / "widgets"
# How colours look to readers without the cones for red, for green, for blue: Machado et al. (2009),
# on linear light. The third is rare; there a smaller distance must do.
VISIONS = {
    "all cones": (np.eye(3), 25),
    "no red": ([[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]], 15),
    "no green": ([[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]], 15),
    "no blue": ([[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]], 12),
}
PAGES = {"light": (lambda colour: colour, "#ffffff"), "dark": (on_dark, DARK_GROUND)}

each_page = pytest.mark.parametrize("page", PAGES)


def linear(colour):
    channels = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    low, high = sorted(float(linear(colour) @ [0.2126, 0.7152, 0.0722]) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def lab(light):
    """CIE L*a*b*, in which equal distances look about equal."""
    xyz = np.array(
        [[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]]
    ) @ np.clip(light, 0, 1)
    x, y, z = np.cbrt(np.maximum(xyz / [0.9505, 1, 1.0888], 0.0089))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@each_page
@pytest.mark.parametrize("name", [*COLOURS, "ink", "soft"])
def test_small_text_in_a_colour_can_be_read(name, page):
    shown, ground = PAGES[page]
    colour = {**COLOURS, "ink": INK, "soft": SOFT}[name]
    assert contrast(shown(colour), ground) >= 4.5
    assert contrast(shown(colour), shown(PALE)) >= 4


@each_page
@pytest.mark.parametrize("vision", VISIONS)
def test_every_reader_tells_each_colour_from_each(vision, page):
    (shown, _), (sees, least) = PAGES[page], VISIONS[vision]
    seen = {name: lab(np.array(sees) @ linear(shown(c))) for name, c in COLOURS.items()}
    for one, other in itertools.combinations(COLOURS, 2):
        assert np.linalg.norm(seen[one] - seen[other]) >= least, (one, other)


def test_a_dark_page_turns_lightness_over_and_keeps_hues():
    assert on_dark("white") == DARK_GROUND
    for name in ("blue", "vermilion", "green"):
        before, after = (lab(linear(c)) for c in (COLOURS[name], on_dark(COLOURS[name])))
        turn = np.degrees(np.arctan2(before[2], before[1]) - np.arctan2(after[2], after[1]))
        assert abs((turn + 180) % 360 - 180) < 25 and before[0] < 55 < after[0]


def test_pixels_turn_as_colours_do():
    pixels = np.array([[[0, 114, 178, 255], [255, 255, 255, 128]]], dtype=np.uint8)
    turned = dark_pixels(pixels)[0]
    assert [f"#{r:02x}{g:02x}{b:02x}" for r, g, b, _ in turned] == [on_dark("#0072b2"), DARK_GROUND]
    assert turned[:, 3].tolist() == [255, 128]


@pytest.mark.parametrize("path", sorted(ASSETS.glob("*-*.*s*")), ids=lambda path: path.name)
def test_explorers_take_their_colours_from_the_palette(path):
    text = path.read_text()
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b|rgba?\(", re.sub(r"//.*", "", text))
    known = set(re.findall(r"--([a-z]+):", " ".join(css_variables())))
    known |= {"rule", "ground", "well"}  # surfaces of the panel itself
    assert set(re.findall(r"var\(--([a-z]+)\)", text)) <= known
