"""Picture of chapter 26: three misconceptions, each beside what happens."""

from transformer_book.drawing import Drawing, Number, Picture

_WORDS = ("The", "animal", "didn't", "cross")
_WIDTH, _HEIGHT = 160, 158  # of a panel


def three_misconceptions() -> Picture:
    """Draw matrices per token, a mask that saves work, and one set of keys and values."""
    cases = (
        ("a matrix per token?", _projections),
        ("does a mask save work?", _masked),
        ("what is handed over?", _handed_over),
    )

    def draw(picture: Drawing) -> None:
        for number, (title, panel) in enumerate(cases):
            x, y = (0, 428 * number / 2) if picture.narrow else (234 * number, 0)
            if picture.narrow:
                places = ((x + 8, y + 50), (x + 204, y + 50))
                picture.text((x + 186, y + 12), title, bold=True)
            else:
                places = ((x + 30, y + 50), (x + 30, y + 248))
                picture.text((x + 110, y + 12), title, bold=True)
            for right, (left, top) in enumerate(places):
                name, colour = (("wrong", "vermilion"), ("right", "green"))[right]
                picture.text((left + _WIDTH / 2, top - 16), name, colour, 13, bold=True)
                panel(picture, left, top, bool(right))

    return Picture(
        "Three pairs of drawings, wrong and right. Matrices: four tokens with four matrices W1 to "
        "W4; four tokens with one matrix W. Mask: a grid of 4 by 4 scores of which only the 10 "
        "permitted ones are computed; a grid of which all 16 are computed and 6 are hidden. "
        "Decoder: one set K, V for three decoder layers; the encoder's vectors go to three layers, "
        "each of which makes K, V of its own.",
        draw,
        (688, 410),
        narrow=(372, 640),
    )


def _projections(picture: Drawing, x: Number, y: Number, right: bool) -> None:
    """Draw four tokens on their way through matrices."""
    if right:
        picture.box(x + 76, y, 50, 142, "W", "key", "ground", bold=True)
    for i, word in enumerate(_WORDS):
        top = y + 38 * i
        token = picture.box(x, top, 58, 28, word)
        picture.arrow(token.right, (x + 74, top + 14))
        picture.arrow((x + 126, top + 14), (x + 152, top + 14))
        if not right:
            picture.box(x + 76, top, 50, 28, f"W_{i + 1}", "key", "ground", bold=True)


def _masked(picture: Drawing, x: Number, y: Number, right: bool) -> None:
    """Draw a grid of scores under a causal mask: computed, hidden, or never computed."""
    cell = 30
    for i in range(4):
        for j in range(4):
            left, top = x + 20 + cell * j, y + cell * i
            seen = j <= i
            if seen or right:
                fill = "query" if seen else "hidden"
                picture.box(left, top, cell - 3, cell - 3, "" if seen else "×", fill, corner=3)
            else:
                picture.box(left, top, cell - 3, cell - 3, "", "ground", edge="rule", corner=3)
    told = "16 computed, 6 hidden" if right else "10 computed"
    picture.text((x + _WIDTH / 2, y + 4 * cell + 14), told, "soft", 13)


def _handed_over(picture: Drawing, x: Number, y: Number, right: bool) -> None:
    """Draw what goes from the encoder to three decoder layers."""
    if right:
        given = picture.box(x - 6, y + 30, 64, 62, "encoder", "pale")
    else:
        given = picture.box(x - 6, y + 30, 64, 62, "K, V", "value", "ground", bold=True)
    for i in range(3):
        top = y + 42 * i
        layer = picture.box(x + 84, top, 76, 34, "" if right else f"layer {i + 1}", "pale")
        picture.arrow(given.right, (layer.x, top + 17))
        if right:
            picture.box(x + 88, top + 4, 40, 26, "K, V", "value", "ground", corner=4)
            picture.text((x + 144, top + 17), f"{i + 1}", bold=True)
    told = "vectors; K, V in each layer" if right else "keys and values, once"
    picture.text((x + _WIDTH / 2, y + 140), told, "soft", 13)
