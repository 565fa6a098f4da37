"""Pictures of chapter 8: one network at every position, and a plane folded by one hidden unit."""

from functools import cache
from typing import Any

import numpy as np
import torch

from transformer.inference.translator import Translator
from transformer_book.drawing import Drawing, Number, Picture
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
                (places[0], x, "query"),
                (places[2], hidden, "key"),
                (places[4], output, "value"),
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


#: Whether "didn't" and "fail to" occur, and the verb phrase with them.
POINTS = {
    (0, 0): "crossed",
    (1, 0): "didn't cross",
    (0, 1): "failed to cross",
    (1, 1): "didn't fail to cross",
}


def folded_plane() -> Picture:
    """Draw a plane before and after one hidden unit folds it along the diagonal."""

    def draw(picture: Drawing) -> None:
        for number, title in enumerate(("before", "after")):
            x, y = (0, 316 * number) if picture.narrow else (348 * number, 0)
            _panel(picture, x, y, title, folded=bool(number))
        if not picture.narrow:
            picture.arrow((318, 150), (346, 150), width=3, colour="key")

    return Picture(
        "Two planes with four labelled points. Before: “crossed” at (0, 0) and “didn't fail to "
        "cross” at (1, 1), “didn't cross” at (1, 0) and “failed to cross” at (0, 1). Blue dots "
        "fill the half below the diagonal, where the hidden unit is active. After: the blue half "
        "lies mirrored on the other, “didn't cross” has moved onto “failed to cross”, and a "
        "straight line separates both from the other two points.",
        draw,
        (688, 300),
        narrow=(340, 618),
    )


def _panel(picture: Drawing, x: Number, y: Number, title: str, folded: bool) -> None:
    unit, left, floor = 150, x + 82, y + 242

    def place(a: Number, b: Number) -> tuple[Number, Number]:
        return left + unit * a, floor - unit * b

    def label(a: int, b: int) -> tuple[Number, Number, float]:
        """Return where the middle of a point's label is, and its width."""
        if folded and a != b:
            at = place(0, 1.2 if a else 1.36)
        else:
            at = place(a, b - 0.17 if b == 0 else b + 0.17)
        width = 7.2 * len(POINTS[a, b])
        return min(max(at[0], x + width / 2 + 2), x + 336 - width / 2), at[1], width

    labels = {point: label(*point) for point in POINTS}
    picture.text((x + 8, y + 12), title, "soft", anchor="start", bold=True)
    steps = np.linspace(-0.3, 1.3, 9)
    lattice = [(float(a), float(b)) for a in steps for b in steps]
    for a, b in sorted(lattice, key=lambda both: both[0] <= both[1]):  # active ones below
        active = a > b + 1e-9
        at = place(b, a) if folded and active else place(a, b)
        size = 9 if active else 4
        # A dot behind a label would be cut off.
        if any(
            abs(at[0] - middle) < (width + size) / 2 and abs(at[1] - height) < 10 + size / 2
            for middle, height, width in labels.values()
        ):
            continue
        picture.box(at[0] - size / 2, at[1] - size / 2, size, size, "",
                    "key" if active else "grey", corner=size / 2)  # fmt: skip
    picture.arrow(place(-0.33, -0.33), place(1.33, 1.33), tip=False, width=2.5, colour="ink")
    if folded:
        picture.arrow(place(-0.33, 0.17), place(0.83, 1.33), tip=False, width=3.5, colour="value")
    for (a, b), said in POINTS.items():
        one = a != b
        at = place(0, 1) if folded and one else place(a, b)
        colour = "query" if one else "ink"
        picture.box(at[0] - 9, at[1] - 9, 18, 18, "", colour, edge="ground", corner=9 if one else 2)
        middle, height, width = labels[a, b]
        picture.box(middle - width / 2, height - 10, width, 20, "", "ground", corner=3)
        picture.text((middle, height), said, colour, 13, bold=True)
