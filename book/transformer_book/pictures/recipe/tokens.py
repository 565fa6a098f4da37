"""Picture of chapter 12: letters of two words, joined by the merges of the shipped vocabulary."""

import json
from dataclasses import dataclass
from functools import cache

from transformer.data.tokenizer import Tokenizer
from transformer_book.drawing import Drawing, Number, Picture

#: A word that the training text has 48 times, and one that it does not have.
WORDS = "animal", "jaywalk"


@dataclass(frozen=True)
class Node:
    """A piece of a word: letters ``start`` to ``end``, made by merge number ``rank`` from 1."""

    start: int
    end: int
    rank: int = 0
    level: int = 0
    parts: "tuple[Node, ...]" = ()


@cache
def _merges() -> dict[tuple[str, str], int]:
    """Return the number of each merge of the shipped vocabulary, from 1."""
    merges = json.loads(Tokenizer.from_pretrained("tatoeba-en-de").to_json())["model"]["merges"]
    return {tuple(pair): number for number, pair in enumerate(merges, 1)}


def trees(word: str) -> list[Node]:
    """Join the letters of a word with a space before it; return what remains, left to right.

    Args:
        word: of English letters.

    Returns:
        One tree per token; its leaves are letters.
    """
    spelled, rank = "Ġ" + word, _merges()
    nodes = [Node(i, i + 1) for i in range(len(spelled))]
    while True:
        pairs = [
            (spelled[a.start : a.end], spelled[b.start : b.end])
            for a, b in zip(nodes, nodes[1:], strict=False)
        ]
        known = [(rank[pair], i) for i, pair in enumerate(pairs) if pair in rank]
        if not known:
            return nodes
        number, i = min(known)
        a, b = nodes[i : i + 2]
        nodes[i : i + 2] = [Node(a.start, b.end, number, 1 + max(a.level, b.level), (a, b))]


def word_trees() -> Picture:
    """Draw the merges that build one known word and the pieces of an unknown one."""
    found = [trees(word) for word in WORDS]
    step, size, rise, left = 42, 40, 62, 4
    levels = [max(node.level for node in roots) for roots in found]
    top = 34

    def height(levels: int) -> int:
        return top + levels * rise + size + 4

    def draw(picture: Drawing) -> None:
        x, y = 0, 0
        for word, roots, high in zip(WORDS, found, levels, strict=True):
            floor = y + height(high if picture.narrow else max(levels)) - size - 4
            count = f"{len(roots)} token" + "s" * (len(roots) > 1)
            picture.text((x + left, y + 12), f"{word}: {count}", anchor="start", bold=True)
            for root in roots:
                _draw(picture, root, "▁" + word, (x + left, floor), (step, size, rise), True)
            if picture.narrow:
                y += height(high) + 22
            else:
                x += step * (len(word) + 1) + 36

    wide = sum(step * (len(word) + 1) for word in WORDS) + 36 + left
    return Picture(
        f"Two words with the space before them, spelled in letters at the bottom. Lines lead from "
        f"letters to pieces, each with the number of its merge. All letters of {WORDS[0]} are "
        f"joined into one token at the top. Those of {WORDS[1]} remain {len(found[1])} tokens: "
        f"{', '.join(('▁' + WORDS[1])[node.start : node.end] for node in found[1])}.",
        draw,
        (wide, height(max(levels))),
        narrow=(step * (max(map(len, WORDS)) + 1) + left, sum(map(height, levels)) + 22),
    )


def _draw(
    picture: Drawing,
    node: Node,
    spelled: str,
    corner: tuple[Number, Number],
    sizes: tuple[int, int, int],
    root: bool = False,
) -> None:
    """Draw a node above its parts; a corner is the upper left one of the first letter."""
    step, size, rise = sizes
    x, y = corner[0] + step * node.start, corner[1] - rise * node.level
    width = step * (node.end - node.start) - 4
    for part in node.parts:
        below = corner[0] + step * (part.start + part.end) / 2 - 2
        picture.arrow((below, corner[1] - rise * part.level), (below, y + size), tip=False)
        _draw(picture, part, spelled, corner, sizes)
    fill, colour = ("key", "ground") if root else ("pale", "ink")
    picture.box(x, y, width, size, "", fill)
    place = x + width / 2, y + (14 if node.rank else size / 2)
    picture.text(place, spelled[node.start : node.end], colour, bold=root)
    if node.rank:
        shade = "ground" if root else "soft"
        picture.text((place[0], y + 30), f"{node.rank:,}", shade, 12)
