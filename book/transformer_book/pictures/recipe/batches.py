"""Picture of chapter 13: the same eight sentences in two batches, in two orders."""

from functools import cache

import numpy as np

from transformer.data.corpora import load_corpus
from transformer.data.tokenizer import Tokenizer
from transformer_book.drawing import Drawing, Number, Picture
from transformer_book.pictures import SENTENCE

ROWS = 4  # sentences of a batch
_LETTERS = 18  # of a sentence that are shown


@cache
def eight_sentences() -> tuple[tuple[str, int], ...]:
    """Return the running sentence and seven of the test split, each with its number of tokens."""
    tokenizer = Tokenizer.from_pretrained("tatoeba-en-de")
    test = load_corpus("tatoeba-en-de").test.source
    drawn = np.random.default_rng(0).choice(len(test), 7, replace=False)
    texts = [SENTENCE, *(test[i] for i in drawn)]
    return tuple((text, len(tokenizer.encode(text)) + 1) for text in texts)


@cache
def orders() -> dict[str, list[int]]:
    """Return the indices of the sentences in each order."""
    lengths = [length for _, length in eight_sentences()]
    by_length = np.argsort(lengths, kind="stable").tolist()
    return {"as they come": list(range(len(lengths))), "sorted by length": by_length}


def padding(order: list[int]) -> tuple[int, int]:
    """Return the padding positions and all positions of batches in this order."""
    lengths = [eight_sentences()[i][1] for i in order]
    batches = [lengths[start : start + ROWS] for start in range(0, len(lengths), ROWS)]
    area = sum(len(batch) * max(batch) for batch in batches)
    return area - sum(lengths), area


def two_orders() -> Picture:
    """Draw two batches of four sentences, as they come and sorted by length."""
    longest = max(length for _, length in eight_sentences())
    row, gap, top, label, cell = 20, 16, 30, 142, 12
    width, height = label + cell * longest, top + 2 * (ROWS * row + gap) + 12

    def draw(picture: Drawing) -> None:
        for number, (name, order) in enumerate(orders().items()):
            x, y = (0, number * (height + 14)) if picture.narrow else (number * (width + 30), 0)
            picture.text((x + 2, y + 10), name, anchor="start", bold=True)
            for batch in range(2):
                corner = x, y + top + batch * (ROWS * row + gap)
                _draw(picture, corner, order[batch * ROWS : (batch + 1) * ROWS], (label, cell, row))
            empty, area = padding(order)
            text = f"{empty} of {area} positions are padding: {empty / area:.0%}"
            picture.text((x + 2, y + height - 8), text, "soft", 13, "start")

    shares = [f"{name}, {empty} of {area}" for name, (empty, area) in
              ((name, padding(order)) for name, order in orders().items())]  # fmt: skip
    return Picture(
        f"Eight sentences as rows of cells, one cell per token, in two batches of four rows. A "
        f"batch is a rectangle as wide as its longest sentence; the rest of each row is padding. "
        f"Padding positions: {'; '.join(shares)}.",
        draw,
        (2 * width + 30, height),
        narrow=(width, 2 * height + 14),
    )


def _draw(
    picture: Drawing, corner: tuple[Number, Number], order: list[int], sizes: tuple[int, int, int]
) -> None:
    """Draw one batch: the beginning of each sentence, and a cell per position."""
    (x, y), (label, cell, row) = corner, sizes
    chosen = [eight_sentences()[i] for i in order]
    longest = max(length for _, length in chosen)
    for number, (text, length) in enumerate(chosen):
        top = y + number * row
        shown = text if len(text) <= _LETTERS else text[:_LETTERS].rstrip() + "…"
        picture.text((x + label - 8, top + row / 2), shown, size=12, anchor="end")
        for place in range(longest):
            colour = "key" if place < length - 1 else "value" if place < length else "pale"
            picture.box(x + label + place * cell, top + 2, cell - 2, row - 4, fill=colour, corner=2)
