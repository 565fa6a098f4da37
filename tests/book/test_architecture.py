"""Figure 1 as a map: every link leads somewhere, and every arrow ends at a box."""

import importlib
import re
import xml.etree.ElementTree as ET

import generated
import pytest

from transformer.model.layers import DecoderLayer, EncoderLayer
from transformer_book.architecture import BOXES, Architecture

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


def test_the_blocks_are_those_of_the_model():
    columns = sorted({box.middle for box in BOXES})
    for middle, layer, count in zip(columns, (EncoderLayer, DecoderLayer), (1, 2), strict=True):
        kinds = [box.kind for box in BOXES if box.middle == middle]
        parameters = [name for name in layer.__init__.__annotations__ if "attention" in name]
        assert kinds.count("attention") == len(parameters) == count
        assert kinds.count("norm") == kinds.count("attention") + kinds.count("feed_forward")
