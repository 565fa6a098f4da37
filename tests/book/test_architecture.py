"""Figure 1 as a map: every link leads somewhere, and its boxes are those of the model."""

import importlib
import re
import xml.etree.ElementTree as ET

import generated
import pytest

from transformer.model.layers import DecoderLayer, EncoderLayer
from transformer_book.architecture import PLACES, Architecture, you_are_here

SVG = "{http://www.w3.org/2000/svg}"
LINKS = [*ET.fromstring(Architecture().svg).iter(f"{SVG}a")]
#: What a box is, its left edge and its top edge, by the link to its chapter.
BOXES = [
    (link.get("aria-label"), link.get("href"), box.get("x"), box.get("y"))
    for link in LINKS
    for box in link.findall(f"{SVG}rect")[:1]
]


def test_every_box_leads_to_a_chapter_and_to_the_api_reference():
    links = [link.get("href") for link in LINKS]
    assert len(BOXES) == 14 and len(links) == 2 * (len(BOXES) + 1)  # and the positions
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
    columns = sorted({int(left) for _, _, left, _ in BOXES})
    for column, layer, count in zip(columns, (EncoderLayer, DecoderLayer), (1, 2), strict=True):
        kinds = [label for label, _, left, _ in BOXES if int(left) == column]
        attention = sum("attention" in kind for kind in kinds)
        parameters = [name for name in layer.__init__.__annotations__ if "attention" in name]
        assert attention == len(parameters) == count
        norms, networks = (sum(start in kind for kind in kinds) for start in ("norm", "Feed-"))
        assert norms == attention + networks and networks == 1


@pytest.mark.parametrize("chapter", PLACES)
def test_you_are_here_marks_the_subject_of_the_chapter(chapter):
    rectangles = ET.fromstring(you_are_here(chapter)).iter(f"{SVG}rect")
    marked = {r.get("y") for r in rectangles if "--vermilion" in r.get("style")}
    own = {top for _, page, _, top in BOXES if page.startswith(chapter)}
    assert marked and own <= marked
