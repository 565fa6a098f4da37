"""Pictures of chapter 1: three paths between two words, and one vector for a sentence.

Each function returns a :class:`~transformer_book.drawing.Picture`; a chapter shows it in one line.
"""

from collections.abc import Sequence

from transformer_book.drawing import Area, Drawing, Number, Picture

_SENTENCE = ("The", "animal", "didn't", "cross", "the", "street", "because", "it")


def three_paths() -> Picture:
    """Draw how far "animal" is from "it" by recurrence, by convolution and by attention."""
    start, end = 1, 7
    distance = end - start

    def draw(picture: Drawing) -> None:
        left, lane = (76, 98) if picture.narrow else (112, 190)
        row, top = 34, 70
        boxes = [
            picture.box(
                0, top + row * i, left - 10, 26, word,
                {start: "key", end: "query"}.get(i, "pale"),
                "ground" if i in (start, end) else "ink", bold=i in (start, end),
            )
            for i, word in enumerate(_SENTENCE)
        ]  # fmt: skip
        heads = ("Recurrence", f"{distance} steps"), ("Convolution", f"{distance} layers")
        for number, (title, cost) in enumerate((*heads, ("Attention", "1 step"))):
            middle = left + lane * (number + 0.5)
            picture.text((middle, 16), title, size=13 if picture.narrow else 15, bold=True)
            picture.text((middle, 38), cost, "soft")
        height = [box.right[1] for box in boxes]
        _recurrence(picture, left + lane / 2, height, start, end)
        _convolution(picture, left + lane * 1.13, lane * 0.74, height, start, end)
        _attention(picture, left + lane * 2.18, left + lane * 2.9, height, start, end)

    return Picture(
        "Three columns beside the words of a sentence. Recurrence passes from “animal” to “it” "
        "through six steps, one after the other; a convolution of width three passes one word "
        "further in each of six layers; attention connects “it” with every word in one step.",
        draw,
        (688, 346),
        narrow=(372, 346),
    )


def _recurrence(
    picture: Drawing, x: Number, height: Sequence[Number], start: int, end: int
) -> None:
    states = []
    for i, y in enumerate(height):
        lit = start <= i <= end
        states.append(picture.box(x - 9, y - 9, 18, 18, "", "key" if lit else "hidden", corner=9))
    for i, (one, other) in enumerate(zip(states, states[1:], strict=False)):
        lit = start <= i < end
        picture.arrow(
            one.bottom, other.top, colour="key" if lit else "rule", width=2.5 if lit else 1.2
        )


def _convolution(
    picture: Drawing, x: Number, width: Number, height: Sequence[Number], start: int, end: int
) -> None:
    layers = end - start
    step = width / layers
    for layer in range(layers + 1):
        for i, y in enumerate(height):
            lit = i == start + layer
            size = 10 if lit else 5
            at = x + step * layer - size / 2, y - size / 2
            picture.box(*at, size, size, "", "key" if lit else "hidden", corner=size / 2)
    for layer in range(layers):
        here = x + step * layer, height[start + layer]
        there = x + step * (layer + 1), height[start + layer + 1]
        picture.arrow(here, there, colour="key", width=2.5, tip=False)


def _attention(
    picture: Drawing, x: Number, right: Number, height: Sequence[Number], start: int, end: int
) -> None:
    for i, y in enumerate(height):
        lit = i == start
        picture.box(x - 4, y - 4, 8, 8, "", "key" if lit else "hidden", corner=4)
        look = dict(colour="key", width=3) if lit else dict(colour="hidden", width=1.2)
        picture.arrow((x + 6, y), (right - 10, height[end]), tip=False, **look)  # type: ignore[arg-type]
    picture.box(right - 9, height[end] - 9, 18, 18, "", "query", corner=9)


def one_vector() -> Picture:
    """Draw a recurrent translator with one vector for the sentence, and one with attention."""
    source = ("The", "animal", "crossed", "the", "street")
    target = ("Das", "Tier", "überquerte", "die", "Straße")

    def draw(picture: Drawing) -> None:
        for number, (title, attends) in enumerate(
            (("One vector for the sentence", False), ("Attention to every word", True))
        ):
            x, y = (0, 262 * number) if picture.narrow else (364 * number, 0)
            panel = 360 if picture.narrow else 324
            picture.text((x + panel / 2, y + 14), title, bold=True)
            read = _chain(picture, x, y + 36, source)
            written = _chain(picture, x + panel - 104, y + 36, target)
            _connect(picture, read, written, attends)

    return Picture(
        "Two translators. On the left, five source words are read one after the other into a "
        "single vector, from which five German words are written. On the right, the German word "
        "“Tier” is connected with every source word, most strongly with “animal”.",
        draw,
        (688, 244),
        narrow=(360, 506),
    )


def _chain(picture: Drawing, x: Number, y: Number, words: Sequence[str]) -> list[Area]:
    boxes = [picture.box(x, y + 41 * i, 104, 26, word) for i, word in enumerate(words)]
    for one, other in zip(boxes, boxes[1:], strict=False):
        picture.arrow(one.bottom, other.top)
    return boxes


def _connect(picture: Drawing, source: list[Area], target: list[Area], attends: bool) -> None:
    if attends:
        for i, box in enumerate(source):
            look = dict(colour="key", width=5) if i == 1 else dict(colour="hidden", width=1.5)
            picture.arrow(box.right, target[1].left, tip=False, **look)  # type: ignore[arg-type]
        return
    (x0, y0), (x1, y1) = source[-1].right, target[0].left
    shades = (0.9, 0.3, 0.6, 1.0, 0.4, 0.7)
    vector = picture.grid((x0 + x1) / 2 - 10, y0 - 122, [[v] for v in shades], "key", (20, 16))
    picture.arrow((x0, y0), (vector.bottom[0], y0), vector.bottom, colour="key", width=2.5)
    picture.arrow(vector.top, (vector.top[0], y1), (x1, y1), colour="key", width=2.5)
