"""Picture of chapter 8: one network at every position."""

from functools import cache
from typing import Any

import numpy as np
import torch

from transformer.inference.translator import Translator
from transformer_book.drawing import Drawing, Picture
from transformer_book.pictures import SENTENCE

_ROWS, _NUMBERS, _UNITS = 7, 12, 24  # what the first picture shows


@cache
def _measured() -> tuple[tuple[str, ...], np.ndarray, np.ndarray, np.ndarray]:
    """Return tokens, and inputs, hidden units and outputs of the shipped model's first layer."""
    translator = Translator.from_pretrained("tatoeba-en-de")
    model: Any = translator.model.eval()
    seen: list[torch.Tensor] = []
    network = model.encoder[0].feed_forward
    handles = [
        part.register_forward_hook(lambda _, given, out: seen.extend((given[0][0], out[0])))
        for part in (network.hidden, network.output)
    ]
    ids = translator.tokenizer.encode(SENTENCE)
    with torch.no_grad():
        model.encode(torch.tensor([[*ids, model.config.eos_id]]))
    for handle in handles:
        handle.remove()
    x, _, hidden, output = (part[:_ROWS].numpy() for part in seen)
    busiest = np.sort(np.argsort(-hidden.max(axis=0), kind="stable")[:_UNITS])
    words = tuple(token.strip("▁") for token in translator.tokenizer.tokens(ids[:_ROWS]))
    return words, x[:, :_NUMBERS], hidden[:, busiest], output[:, :_NUMBERS]


def one_network() -> Picture:
    """Draw the feed-forward layer of the shipped model on the running sentence."""
    words, x, hidden, output = _measured()
    size, units = 256, 512

    def draw(picture: Drawing) -> None:
        cell, gap, left, wall = (4, 7, 66, 32) if picture.narrow else (7, 14, 84, 58)
        row, top = 32, 52
        at, places = left + gap, []
        for width in (_NUMBERS * cell, wall, _UNITS * cell, wall, _NUMBERS * cell):
            places.append((at, width))
            at += width + gap
        heads = ("in", f"{_NUMBERS} of {size}"), ("", ""), ("hidden", f"{_UNITS} of {units}")
        for (place, width), (name, count) in zip(
            places, (*heads, ("", ""), ("out", f"{_NUMBERS} of {size}")), strict=True
        ):
            if name:
                picture.text((place + width / 2, 12), name, bold=True)
                picture.text((place + width / 2, 31), count, "soft", 12)
        height = row * _ROWS - 6
        for i, word in enumerate(words):
            middle = top + row * i + 13
            picture.box(0, middle - 13, left, 26, word)
            picture.arrow((left, middle), (places[-1][0], middle), tip=False)
            for (place, _), values, colour in (
                (places[0], x, "purple"),
                (places[2], hidden, "brown"),
                (places[4], output, "purple"),
            ):
                width = values.shape[1] * cell
                picture.box(place, middle - 9, width, 18, fill="ground", corner=0)
                picture.strip(
                    place, middle - 9, values[i], colour, (cell, 18),
                    largest=float(np.abs(values).max()),
                )  # fmt: skip
        for (place, width), name in ((places[1], "W_1"), (places[3], "W_2")):
            picture.box(place, top, width, height, name, edge="rule", bold=True)
        (_, _), (first, wide), (_, _), (second, _), _ = places
        picture.text((first + wide / 2, top + height + 16), "the same for all", "soft", 12)
        picture.text((second + wide / 2, top + height + 16), "the same for all", "soft", 12)

    return Picture(
        "The first seven tokens of the running sentence, one per row. Each row has a strip for its "
        "vector, which goes through the matrix W1, a wider strip of hidden units, mostly zero, the "
        "matrix W2, and a strip for the output. Both matrices are tall boxes through which all "
        "rows pass. No line leads from one row to another.",
        draw,
        (620, 306),
        narrow=(372, 306),
    )
