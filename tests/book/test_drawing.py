"""The drawing kit: data becomes shapes in the colours of the page."""

import re
import xml.etree.ElementTree as ET

from transformer_book.drawing import Drawing, Picture

SVG = "{http://www.w3.org/2000/svg}"


def tree_of(drawing):
    return ET.fromstring(drawing.svg())


def test_a_strip_is_darker_for_larger_numbers_and_grey_below_zero():
    drawing = Drawing(200, 50)
    area = drawing.strip(10, 10, [1.0, 0.5, -1.0], "key", (20, 16), label="k")
    shades = {
        (re.search(r"--(\w+)", path.get("style"))[1], path.get("stroke-opacity")): path.get("d")
        for path in tree_of(drawing).iter(f"{SVG}path")
    }
    assert {("key", "1.00"), ("key", "0.50"), ("grey", "1.00")} == shades.keys()
    assert shades["grey", "1.00"].startswith("M60 ")  # the middle of the third cell
    assert area.right == (70, 18) and area.bottom == (40, 26)


def test_text_is_escaped_with_lowered_indices_and_true_minus_signs():
    drawing = Drawing(100, 100)
    drawing.text((0, 0), "d_k < -1, output_weight")
    text = next(tree_of(drawing).iter(f"{SVG}text"))
    shown = "".join(text.itertext()).replace("\u200b", "")
    assert shown == "dk < \u22121, output_weight"
    assert text.find(f"{SVG}tspan").text == "k"


def test_a_picture_is_drawn_again_for_phones():
    seen = []
    picture = Picture("A box.", lambda d: seen.append(d.narrow), (600, 200), narrow=(380, 300))
    data, metadata = picture._repr_mimebundle_()
    assert seen == [False, True] and data["text/plain"] == "A box."
    assert 'viewBox="0 0 600 200"' in data["image/svg+xml"]
    assert 'viewBox="0 0 380 300"' in metadata["image/svg+xml"]["narrow"]
