"""Picture of chapter 18: which inputs reach an output after three layers of four kinds."""

import numpy as np

from transformer_book.drawing import Drawing, Number, Picture
from transformer_book.widgets.fields import KINDS, reads, receptive_fields

WORDS = ("The", "animal", "didn't", "cross", "the", "street", "because", "it", "was", "too",
         "tired", ".")  # fmt: skip
SOURCE, OUTPUT, DEPTH = 1, 7, 3

# The kinds that are drawn, each with its title and the number of hops from "animal" to "it". Of
# these hops, three at most are drawn.
_DRAWN = (
    (KINDS[0], "self-attention", "1 layer"),
    (KINDS[1], "recurrence", "7 steps"),
    (KINDS[2], "convolution, k = 3", "6 layers"),
    (KINDS[4], "restricted, r = 5", "3 layers"),
)


def receptive_field() -> Picture:
    """Draw the units that influence "it" after three layers of four kinds."""

    def draw(picture: Drawing) -> None:
        wide, high = (366, 172) if picture.narrow else (344, 186)
        for number, (kind, title, needed) in enumerate(_DRAWN):
            column, row = (0, number) if picture.narrow else (number % 2, number // 2)
            _panel(picture, (column * wide, row * high), wide - 6, kind, (title, needed))

    return Picture(
        "Four grids with twelve columns, one per token of the sentence, and a row for the inputs "
        "below the rows of the layers. The units that influence the output at “it” are filled. "
        "With one layer of self-attention these are all inputs. After three layers of the other "
        "kinds: with a recurrence “it” and two tokens before it; "
        "with a convolution of width 3, three tokens to either side; with restricted attention, "
        "six to the left, among them “animal”, and all four to the right.",
        draw,
        (688, 372),
        narrow=(366, 688),
    )


def _panel(
    picture: Drawing,
    corner: tuple[Number, Number],
    width: Number,
    kind: str,
    texts: tuple[str, str],
) -> None:
    left, top = corner
    depth = min(int(texts[1].split()[0]), DEPTH)
    field = receptive_fields(kind, depth, OUTPUT, len(WORDS))
    step, rise, size = (width - 10) / len(WORDS), 90 / depth, 12
    picture.text((left + 4, top + 12), texts[0], bold=True, anchor="start")
    picture.text((left + width - 8, top + 12), f"animal to it: {texts[1]}", "soft", 12, "end")

    def place(i: int, level: int) -> tuple[Number, Number]:
        return left + 5 + step * (i + 0.5), top + 40 + rise * (depth - level)

    for level in range(depth):
        sees = reads(kind, level, len(WORDS))
        for i, j in np.argwhere(sees & field[level + 1][:, None]).tolist():
            picture.arrow(place(i, level + 1), place(j, level), colour="key", width=1, tip=False)
    for level in range(depth + 1):
        for i in range(len(WORDS)):
            x, y = place(i, level)
            lit = field[level, i]
            fill = "query" if level == depth else "key"
            picture.box(x - size / 2, y - size / 2, size, size, fill=fill if lit else "pale",
                        edge="" if lit else "rule", corner=size / 2)  # fmt: skip
    for i, colour in ((SOURCE, "key"), (OUTPUT, "query")):
        x, y = place(i, 0)
        picture.text((x, y + 20), WORDS[i], colour, 13, bold=True)
