"""Pictures of chapter 22: where the paper is silent, and rotary positions."""

import math

from transformer_book.drawing import Drawing, Number, Picture

#: Parts of the model from the input to the update, with what the text says, what it leaves open,
#: and what the published code of June 2017 does.
_PARTS = (
    ("embedding", "one matrix, times √d_model", "how large at first?", "variance 1 / d_model"),
    ("attention", "QWᵢ, KWᵢ, VWᵢ", "with biases?", "yes"),
    ("add & norm", "LayerNorm(x + Sublayer(x))", "with which epsilon?", "10⁻⁶"),
    ("first input", "outputs (shifted right)", "what comes first?", "a vector of zeros"),
    ("loss", "label smoothing 0.1", "for which other tokens?", "all but the right one"),
    ("update", "Eq. (3)", "gradients clipped?", "no"),
)
_HEADS = ("The text says", "It leaves open", "The published code")


def silences() -> Picture:
    """Draw the parts of the model in order, with what the text says of each and what it omits."""

    def draw(picture: Drawing) -> None:
        narrow = picture.narrow
        wide, step, top = (94, 84, 76) if narrow else (120, 42, 30)
        columns = (108,) * 3 if narrow else (136, 330, 522)
        colours = ("ink", "query", "green")
        for i, (x, head, colour) in enumerate(zip(columns, _HEADS, colours, strict=True)):
            place = (x, 12 + 22 * i if narrow else 12)
            picture.text(place, head, colour, 13, "start", bold=True)
        before = None
        for number, (name, *told) in enumerate(_PARTS):
            y = top + step * number
            box = picture.box(0, y, wide, 28, name)
            if before is not None:
                picture.arrow(before.bottom, box.top)
            before = box
            for i, (x, text, colour) in enumerate(zip(columns, told, colours, strict=True)):
                line = y + (12 + 22 * i if narrow else 14)
                picture.text((x, line), text, colour, 13, "start", bold=i == 1)

    return Picture(
        "Six parts of the model in order, from the embedding to the update. For each: what the "
        "text says, what it leaves open, such as the epsilon of the norm, and what the published "
        "code of June 2017 does.",
        draw,
        (688, 288),
        narrow=(360, 576),
    )


def _turned(length: Number, degrees: Number) -> tuple[float, float]:
    angle = math.radians(degrees)
    return length * math.cos(angle), -length * math.sin(angle)


def rotation(turn: Number = 22) -> Picture:
    """Draw a query and a key, rotated by their positions, at three places in a sentence.

    Args:
        turn: degrees per position.
    """
    query, key = 20, 10  # their directions before they are turned, in degrees
    pairs = ((0, 2), (3, 5), (7, 9))

    def draw(picture: Drawing) -> None:
        for number, (asked, asking) in enumerate(pairs):
            x, y = (0, 220 * number) if picture.narrow else (230 * number, 0)
            radius, middle = 74, (x + 114, y + 122)
            title = f"key at {asked}, query at {asking}"
            picture.text((middle[0], y + 14), title, bold=True, size=13)
            picture.box(
                middle[0] - radius, middle[1] - radius, 2 * radius, 2 * radius, "", "ground",
                edge="rule", corner=radius,
            )  # fmt: skip
            ends = {}
            for name, start, place in (("key", key, asked), ("query", query, asking)):
                degrees = start + turn * place
                dx, dy = _turned(radius, degrees)
                picture.arrow(middle, (middle[0] + dx, middle[1] + dy), colour=name, width=3)
                fx, fy = _turned(radius + 12, degrees)
                picture.text((middle[0] + fx, middle[1] + fy), name[0], name, 14, bold=True)
                ends[name] = degrees
            between = ends["query"] - ends["key"]
            product = math.cos(math.radians(between))
            said = f"{between:.0f}° apart, product {product:.2f}".replace("-", "−")
            picture.text((middle[0], y + 214), said, "soft", 13)

    return Picture(
        "Three circles, each with a key and a query as arrows. From circle to circle both are "
        "turned further, because both positions have grown by the same number. The angle between "
        "them, and so their product, stays the same.",
        draw,
        (688, 226),
        narrow=(228, 666),
    )
