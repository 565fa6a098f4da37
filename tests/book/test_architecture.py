"""Figure 1 as a map: every link leads somewhere, and every arrow ends at a box."""

import importlib
import re
import xml.etree.ElementTree as ET

import generated
import pytest

from transformer.model.layers import DecoderLayer, EncoderLayer
from transformer_book.architecture import BOXES, DESCRIPTION, Architecture, _lines

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def tree():
    return ET.fromstring(Architecture()._svg())


def test_every_box_leads_to_a_chapter_and_to_the_api_reference(tree):
    links = [link.get("href") for link in tree.iter(f"{SVG}a")]
    assert len(links) == 2 * (len(BOXES) + 1)
    for chapter, entry in zip(links[::2], links[1::2], strict=True):
        assert (generated.ROOT / "notebooks" / chapter).with_suffix(".ipynb").is_file()
        page, name = entry.split("#")
        source = (generated.ROOT / "notebooks" / page).resolve().with_suffix(".md")
        module, *rest = re.match(r"(\w+\.\w+\.\w+)\.([\w.]+)", name).groups()
        assert f"automodule:: {module}\n" in generated.fill("book/api/x", source.read_text())
        thing = importlib.import_module(module)
        for part in rest[0].split("."):
            thing = getattr(thing, part)


def test_it_has_a_title_a_description_and_labels(tree):
    assert tree.find(f"{SVG}title").text and tree.find(f"{SVG}desc").text == DESCRIPTION
    assert tree.get("aria-labelledby") == tree.find(f"{SVG}title").get("id")
    assert all(link.get("aria-label") for link in tree.iter(f"{SVG}a"))


def test_the_blocks_are_those_of_the_model():
    columns = sorted({box.middle for box in BOXES})
    for middle, layer, count in zip(columns, (EncoderLayer, DecoderLayer), (1, 2), strict=True):
        kinds = [box.kind for box in BOXES if box.middle == middle]
        parameters = [name for name in layer.__init__.__annotations__ if "attention" in name]
        assert kinds.count("attention") == len(parameters) == count
        assert kinds.count("norm") == kinds.count("attention") + kinds.count("feed_forward")


def test_arrows_end_at_boxes_and_no_two_boxes_overlap():
    boxes = [(b.middle - b.width // 2, b.top, b.middle + b.width // 2, b.top + b.height)
             for b in BOXES]  # fmt: skip
    for i, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[i + 1 :]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
        for points in _lines():
            assert not any(left < x < right and top < y < bottom for x, y in points)
        ends = [points[-1] for points in _lines()]
        assert any(left <= x <= right and top <= y <= bottom for x, y in ends)
