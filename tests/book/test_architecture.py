"""The map of the book: every link leads somewhere, every line starts and ends at something."""

import importlib
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from transformer.book.architecture import BOXES, DESCRIPTION, POSITIONS, Architecture, _lines

NOTEBOOKS = Path(__file__).resolve().parents[2] / "notebooks"

SVG = "{http://www.w3.org/2000/svg}"
CHAPTERS = {path.stem for path in (Path(__file__).parents[2] / "notebooks").glob("*.ipynb")}
PLANNED = {"05_masks", "06_heads", "07_positions", "08_feed_forward", "09_depth", "10_embeddings"}


@pytest.fixture(scope="module")
def tree():
    svg = Architecture()._svg().replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1)
    return ET.fromstring(svg)


def resolve(name):
    """The object that a full name stands for."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            thing = getattr(thing, part)
        return thing
    raise AssertionError(name)


def test_every_box_leads_to_a_chapter_and_to_something_in_the_package(tree):
    links = [link.get("href") for link in tree.iter("{http://www.w3.org/2000/svg}a")]
    assert len(links) == 2 * (len(BOXES) + 1)
    for chapter, api in zip(links[::2], links[1::2], strict=True):
        assert chapter.removesuffix(".html") in CHAPTERS | PLANNED
        page, name = api.split("#")
        documents = (NOTEBOOKS / page).resolve().with_suffix(".md").read_text()
        module = ".".join(name.split(".")[:3])
        assert f".. automodule:: {module}\n" in documents and resolve(name) is not None
    for box in BOXES:
        assert resolve(box.api) is not None and box.api.endswith(box.label)
    assert POSITIONS[0].endswith(POSITIONS[1])


def test_it_says_in_words_what_it_shows(tree):
    assert tree.find(f"{SVG}title").text and tree.find(f"{SVG}desc").text == DESCRIPTION
    assert tree.get("aria-labelledby") == tree.find(f"{SVG}title").get("id")
    assert all(link.get("aria-label") for link in tree.iter(f"{SVG}a"))
    assert [group.get("role") for group in tree.iter(f"{SVG}g") if group.get("role")] == ["img"]


def test_the_blocks_are_those_of_the_model():
    from transformer.model.layers import DecoderLayer, EncoderLayer

    def count(layer, kind):
        return sum(kind in name for name in layer.__init__.__annotations__)

    middle = {box.middle for box in BOXES}
    encoder, decoder = sorted(middle)
    kinds = {m: [box.kind for box in BOXES if box.middle == m] for m in middle}
    assert kinds[encoder].count("attention") == count(EncoderLayer, "attention") == 1
    assert kinds[decoder].count("attention") == count(DecoderLayer, "attention") == 2
    for column in kinds.values():
        sublayers = column.count("attention") + column.count("feed_forward")
        assert column.count("norm") == sublayers


def test_arrows_end_at_boxes_and_no_two_boxes_overlap():
    boxes = [(b.middle - b.width // 2, b.top, b.middle + b.width // 2, b.top + b.height)
             for b in BOXES]  # fmt: skip
    for i, (left, top, right, bottom) in enumerate(boxes):
        for other in boxes[i + 1 :]:
            assert right <= other[0] or other[2] <= left or bottom <= other[1] or other[3] <= top
    inside = [
        (x, y)
        for points, _ in _lines()
        for x, y in points
        if any(left < x < right and top < y < bottom for left, top, right, bottom in boxes)
    ]
    assert inside == []
    touched = {
        box
        for points, arrow in _lines()
        for box in boxes
        if arrow and box[0] <= points[-1][0] <= box[2] and box[1] <= points[-1][1] <= box[3]
    }
    assert touched == set(boxes)


def test_the_output_is_the_same_every_time_and_loads_nothing():
    first, second = (Architecture()._repr_mimebundle_() for _ in range(2))
    assert first == second and set(first) == {"text/html", "image/png", "text/plain"}
    assert not re.search(r'(src|xlink:href)="', first["text/html"])
