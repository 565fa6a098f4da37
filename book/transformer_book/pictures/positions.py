"""Picture of chapter 7: a word's vector, plus a row for its position."""

import torch

from transformer.data import toy
from transformer.minimal import sinusoids
from transformer_book.drawing import Area, Drawing, Number, Picture
from transformer_book.toy_translator import trained

_ORDERS = (
    ("The", "dog", "didn't", "see", "the", "cat"),
    ("The", "cat", "didn't", "see", "the", "dog"),
)
_SHOWN = 4  # numbers of each vector


def token_and_position() -> Picture:
    """Draw "dog" in two sentences: one vector, two positions, two sums."""
    embedding = trained().embedding.weight.detach()
    vector = (embedding[toy.IDS["dog"]] * embedding.size(1) ** 0.5)[:_SHOWN]
    places = [words.index("dog") for words in _ORDERS]
    rows = sinusoids(len(_ORDERS[0]), embedding.size(1))[places, :_SHOWN]

    def draw(picture: Drawing) -> None:
        y: Number = 0
        for words, place, row in zip(_ORDERS, places, rows, strict=True):
            y = _sentence(picture, y, words)
            parts = (
                ("dog", vector, "purple"),
                (f"position {place}", row, "brown"),
                ("sum", vector + row, "purple"),
            )
            y = (_below if picture.narrow else _beside)(picture, y, parts)

    return Picture(
        "Two sentences of the same words, “The dog didn't see the cat” and “The cat didn't see the "
        f"dog”. In both, “dog” has the vector {_said(vector)}. In the first, the row of position "
        f"{places[0]} is added, and the sum is {_said(vector + rows[0])}; in the second the row of "
        f"position {places[1]}, and the sum is {_said(vector + rows[1])}.",
        draw,
        (688, 274),
        narrow=(372, 392),
    )


def _said(vector: torch.Tensor) -> str:
    return ", ".join(f"{number:.2f}" for number in vector.tolist())


def _sentence(picture: Drawing, y: Number, words: tuple[str, ...]) -> Number:
    """Draw a sentence with its positions below, and return where the next part begins."""
    step: Number = 62 if picture.narrow else 84
    lit = {words.index("dog"): "purple"}
    for place, box in enumerate(picture.tokens(words, 0, y, step, lit, (0.96, 28))):
        x, bottom = box.bottom
        picture.text((x, bottom + 14), str(place), "brown" if place in lit else "soft", 13)
    return y + 62


def _vector(
    picture: Drawing, x: Number, y: Number, vector: torch.Tensor, colour: str, cell: Number
) -> Area:
    numbers = vector.numpy()[None]
    return picture.grid(x, y, numbers, colour, (cell, 30), digits=2, largest=2)


def _beside(
    picture: Drawing, y: Number, parts: tuple[tuple[str, torch.Tensor, str], ...]
) -> Number:
    for number, (name, vector, colour) in enumerate(parts):
        x = 1 + 244 * number
        area = _vector(picture, x, y + 22, vector, colour, 49)
        picture.text((area.x, y + 8), name, colour, anchor="start", bold=True)
        if number:
            picture.text((x - 24, area.left[1]), "=" if number == 2 else "+", size=20)
    return y + 96


def _below(picture: Drawing, y: Number, parts: tuple[tuple[str, torch.Tensor, str], ...]) -> Number:
    for number, (name, vector, colour) in enumerate(parts):
        area = _vector(picture, 140, y + 42 * number, vector, colour, 57)
        picture.text((26, area.left[1]), name, colour, anchor="start", bold=True)
        if number:
            picture.text((10, area.left[1]), "=" if number == 2 else "+", size=20)
    return y + 3 * 42 + 24
