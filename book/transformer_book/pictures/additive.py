"""Picture of chapter 3: two ways to score every pair of a query and a key, with shapes."""

from transformer_book.drawing import Area, Drawing, Number, Picture

_SCORES = 304  # y of the scores; in a narrow picture, those of the dot product are higher
_LAYERS = 6  # squares that suggest the axis d_k


def two_scores() -> Picture:
    """Draw the dot-product score and the additive score side by side, for all pairs at once."""

    def draw(picture: Drawing) -> None:
        for number, part in enumerate((_dot_product, _additive)):
            x, y = (0, 296 * number) if picture.narrow else (352 * number, 0)
            part(picture, x, y)

    return Picture(
        "Two block diagrams. Left, the dot product: queries, n by d_k, and keys, n by d_k, meet in "
        "one matrix product, which returns the scores, n by n. Right, the additive score: every "
        "query is added to every key, which makes a block of n by n by d_k numbers; all of them "
        "pass through a tanh, and a product with the vector v returns the scores, n by n.",
        draw,
        (688, 400),
        narrow=(336, 696),
    )


def _inputs(picture: Drawing, x: Number, y: Number, title: str, step: str) -> Area:
    """Draw title, queries, keys and the step at which they meet; return the step's box."""
    picture.text((x + 168, y + 14), title, bold=True)
    queries = picture.box(x + 20, y + 34, 132, 46, "queries\nn × d_k", "query", "ground")
    keys = picture.box(x + 184, y + 34, 132, 46, "keys\nn × d_k", "key", "ground")
    meeting = picture.box(x + 58, y + 108, 220, 30, step)
    for box, colour in ((queries, "query"), (keys, "key")):
        end = box.bottom[0], y + 108
        picture.arrow(box.bottom, end, colour=colour, width=2)
    return meeting


def _scores(picture: Drawing, x: Number, y: Number) -> Area:
    square = picture.box(x + 123, y, 90, 90, "scores\nn × n", "ground", edge="ink")
    return Area(square.x, square.y, square.width, square.height)


def _dot_product(picture: Drawing, x: Number, y: Number) -> None:
    meeting = _inputs(picture, x, y, "Dot product", "one matrix product")
    scores = _scores(picture, x, y + (_SCORES - 130 if picture.narrow else _SCORES))
    picture.arrow(meeting.bottom, scores.top, width=2)


def _additive(picture: Drawing, x: Number, y: Number) -> None:
    meeting = _inputs(picture, x, y, "Additive", "every query + every key")
    left, top, side, shift = x + 123, y + 154, 54, 6
    picture.arrow(meeting.bottom, (meeting.bottom[0], top), width=2)
    for layer in reversed(range(_LAYERS)):
        block = picture.box(
            left + shift * layer, top + 4 + (_LAYERS - 1 - layer) * 3, side, side, "",
            "pale", edge="ink", corner=2,
        )  # fmt: skip
    picture.text((left + side + shift * _LAYERS + 8, top + 34), "n × n × d_k", anchor="start")
    step = picture.box(x + 58, y + 250, 220, 30, "tanh, then product with v")
    picture.arrow((step.top[0], block.y + side), step.top, width=2)
    picture.arrow(step.bottom, _scores(picture, x, y + _SCORES).top, width=2)
