"""Picture of chapter 28: the translations of one sentence during the training of a model."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from transformer_book.drawing import Drawing, Number, Picture

_MOST, _SHOWN = 14, 10  # words of a translation; of a longer one, the first words
_LONGEST = 24  # letters of a word
#: Pixels of letters that are wider or narrower than others.
_WIDTHS = dict.fromkeys("mwMW", 13.5) | dict.fromkeys("ijltfrI.,;'! ", 5.5)


def kept_words(text: str, last: str) -> list[tuple[str, bool]]:
    """Return the words, and whether each is in a longest common subsequence with the last text."""
    words, others = text.split(), [_bare(word) for word in last.split()]
    bare = [_bare(word) for word in words]
    # longest[i, j]: of the words from i and the others from j
    longest = np.zeros((len(words) + 1, len(others) + 1), dtype=int)
    for i in reversed(range(len(words))):
        for j in reversed(range(len(others))):
            same = bare[i] == others[j] and bool(bare[i])
            longest[i, j] = max(longest[i + 1, j], longest[i, j + 1], same + longest[i + 1, j + 1])
    kept, i, j = set(), 0, 0
    while i < len(words) and j < len(others):
        if bare[i] and bare[i] == others[j] and longest[i, j] == 1 + longest[i + 1, j + 1]:
            kept.add(i)
            i, j = i + 1, j + 1
        elif longest[i + 1, j] == longest[i, j]:
            i += 1
        else:
            j += 1
    return [(word, i in kept) for i, word in enumerate(words)]


def _doubling(steps: Sequence[int]) -> list[int]:
    """Choose the first step, then always the next that is at least twice as far, and the last."""
    chosen: list[int] = []
    for place, step in enumerate(steps):
        if not chosen or step >= max(1, 2 * steps[chosen[-1]]) or place == len(steps) - 1:
            chosen.append(place)
    return chosen


def as_it_learns(
    rows: Sequence[dict[str, Any]], source: str, averaged: str | None = None
) -> Picture:
    """Draw the first translation of some rows, each at least twice as many steps on."""
    if not rows:
        raise ValueError("rows must have at least one translation")
    shown = [rows[place] for place in _doubling([row["step"] for row in rows])]
    told = [(f"step {row['step']:,}", row["translations"][0]) for row in shown]
    if averaged is not None:
        told.append(("average", averaged))
    texts = [(name, _cut(text, told[-1][1])) for name, text in told]
    english = [(word, "key") for word in source.split()]

    def draw(picture: Drawing) -> None:
        _draw(picture, english, texts)

    said = "; ".join(
        f"{name}: {' '.join(word for word, _ in text) or 'nothing'}" for name, text in texts
    )
    sizes = []
    for narrow in (False, True):
        canvas = Drawing(372 if narrow else 688, 0)
        sizes.append((canvas.width, _draw(canvas, english, texts)))
    return Picture(
        f"“{source}”, translated by one model during its training. {said}.",
        draw,
        sizes[0],
        narrow=sizes[1],
    )


def _cut(text: str, last: str) -> list[tuple[str, str]]:
    """Return the words of a translation with their colours, at most so many."""
    words = [
        (word if len(word) <= _LONGEST else f"{word[: _LONGEST - 1]}…", "value" if kept else "pale")
        for word, kept in kept_words(text, last)
    ]
    if len(words) <= _MOST:
        return words
    return [*words[:_SHOWN], (f"and {len(words) - _SHOWN} more", "")]


def _draw(
    picture: Drawing,
    english: list[tuple[str, str]],
    texts: Sequence[tuple[str, list[tuple[str, str]]]],
) -> int:
    """Draw the timeline and its translations; return the height in pixels."""
    narrow = picture.narrow
    left, line = (26, 12) if narrow else (106, 90)
    room = picture.width - left
    y = _flow(picture, english, 0 if narrow else left, 2, picture.width if narrow else room) + 16
    start, places = y, []
    for name, text in texts:
        if narrow:
            picture.text((left, y + 9), name, "soft", 13, "start")
            places.append(y + 9)
            y += 21
        else:
            picture.text((line - 12, y + 13), name, "soft", 13, "end")
            places.append(y + 13)
        y = _flow(picture, text, left, y, room) + 10
    picture.arrow((line, start), (line, y + 4), width=2)
    for place in places:
        picture.box(line - 5, place - 5, 10, 10, "", "value", edge="ground", corner=5)
    return int(y + 6)


def _flow(
    picture: Drawing, words: list[tuple[str, str]], x: Number, y: Number, room: Number
) -> Number:
    """Draw words in boxes, line by line; return the lower edge of the last line."""
    at, height = x, 26
    for word, colour in words or [("(nothing)", "")]:
        width = 12 + sum(_WIDTHS.get(letter, 10 if letter.isupper() else 8.8) for letter in word)
        if at > x and at + width > x + room:
            at, y = x, y + height + 4
        if colour:
            ink = "ink" if colour == "pale" else "ground"
            picture.box(at, y, width, height, word, colour, ink)
        else:
            picture.text((at + 2, y + height / 2), word, "soft", 12, "start")
        at += width + 4
    return y + height


def _bare(word: str) -> str:
    """Return a word in lower case without punctuation."""
    return re.sub(r"\W", "", word).lower()
