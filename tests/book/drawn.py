"""What a drawing shows, read from its SVG."""

import re
from html import unescape


def words(drawing):
    return [unescape(text) for text in re.findall(r"<text[^>]*>([^<]+)</text>", drawing.svg())]


def require_equal_variants(picture):
    """Check that both variants show the same words, and that no box leaves its frame."""
    wide, narrow = picture.drawn
    assert sorted(words(wide)) == sorted(words(narrow))
    assert wide.width <= 688 and narrow.width <= 380
    for drawing in (wide, narrow):
        boxes = re.findall(r'<rect x="([\d.-]+)" y="([\d.-]+)" width="([\d.]+)" height="([\d.]+)"',
                           drawing.svg())  # fmt: skip
        for x, y, width, height in (map(float, box) for box in boxes):
            assert x >= 0 and x + width <= drawing.width
            assert y >= 0 and y + height <= drawing.height
