"""Figures as SVG: the same in every run, text as text, colours that follow the page."""

import re
import xml.etree.ElementTree as ET

import matplotlib.pyplot as plt
import numpy as np
import pytest

from transformer_book.figures import STYLE, figure
from transformer_book.palette import COLOURS, VARIABLES, css_variables, on_dark
from transformer_book.svg import MOST_POINTS, SMALLEST, crowding, for_notebook, to_svg


@pytest.fixture(autouse=True)
def style():
    with plt.rc_context(STYLE):
        yield
    plt.close("all")


def panels():
    numbers = np.random.default_rng(0).random((4, 4))
    made, (left, right) = figure(1, 2, height=3)
    left.plot([0, 1], [0, 1], color=COLOURS["vermilion"], label="$d_k$ = 64")
    left.plot([0, 1], [1, 0], color="#123456")
    left.set(title="Two lines", ylabel="weight")
    right.imshow(numbers)
    return made


def test_the_same_figure_gives_the_same_characters_and_text_is_text():
    svg = to_svg(panels())
    assert svg == to_svg(panels())
    tree = ET.fromstring(svg)
    words = ["".join(text.itertext()) for text in tree.iter("{http://www.w3.org/2000/svg}text")]
    assert {"Two lines", "weight"} <= set(words)


def test_every_colour_is_a_variable_with_a_value_for_dark_pages():
    svg = to_svg(panels())
    painted = re.findall(r"(?:fill|stroke): ([^;\"]+)", svg)
    assert painted and all(re.match(r"none|var\(--", colour) for colour in painted)
    assert f"var(--vermilion, {COLOURS['vermilion']})" in svg
    assert "var(--c123456, #123456)" in svg and f"--c123456:{on_dark('#123456')};" in svg
    defined = set(re.findall(r"--([a-z]+):", css_variables()[0]))
    assert set(VARIABLES.values()) <= defined


def test_a_dense_scatter_is_stored_as_pixels_for_both_themes():
    made, axes = figure()
    axes.scatter(*np.random.default_rng(0).random((2, 20 * MOST_POINTS)))
    svg = to_svg(made)
    assert len(svg) < 400_000
    assert re.findall(r'<image class="(on-\w+)"', svg) == ["on-light", "on-dark"]


def test_on_a_phone_panels_are_stacked_unless_texts_would_overlap():
    made, (left, right) = figure(1, 2, height=3, sharey=True)
    left.set_ylabel("weight")
    wide, narrow = for_notebook(made)
    sizes = [re.search(r'viewBox="0 0 (\S+) (\S+)"', svg) for svg in (wide, narrow["narrow"])]
    (width, height), (phone_width, phone_height) = ([float(n) for n in s.groups()] for s in sizes)
    assert phone_width < 0.85 * width and phone_height > 1.5 * height
    assert right.get_ylabel() == "weight"

    crowded, axes = figure()
    axes.set_xticks(range(9), [f"word {i:04}" for i in range(9)], fontsize=8)
    assert crowding(crowded) == 0
    assert for_notebook(crowded)[1] == {}


def test_on_a_phone_letters_are_larger_and_long_names_have_several_lines():
    made, axes = figure(height=2)
    axes.plot(range(4), range(4))
    long, one_word = "three matrices for embeddings and output", "multi30k-convolutional-cpu"
    names = ["a name", long, "short", one_word]
    axes.set_yticks(range(4), names, fontsize="small")
    axes.set_title("A title that is longer than a figure on a phone is wide")
    _, narrow = for_notebook(made)
    svg = narrow["narrow"]
    assert min(map(float, re.findall(r"([\d.]+)px", svg))) == SMALLEST
    assert names[1] not in svg and "three matrices for" in svg
    assert names[0] in svg and names[3] in svg
    assert axes.get_title(loc="left").count("\n") == 1
    assert made.get_size_inches()[1] > 2  # room for the lines
