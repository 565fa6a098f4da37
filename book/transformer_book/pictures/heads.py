"""Pictures of chapters 5 and 21: one average or several, the paper's Figure 2, split and merge, and
where "it" looks.

Each function returns a :class:`~transformer_book.drawing.Picture`.
"""

from collections.abc import Sequence
from functools import cache

import numpy as np

from transformer.inference.translator import Translator
from transformer_book.drawing import Area, Drawing, Number, Picture
from transformer_book.pictures import SENTENCE

_WORDS = ("The", "animal", "didn't", "cross", "the", "street")
# The words that "cross" needs by their index, each with a colour and a vector.
_READ = {
    1: ("key", (1.0, 0.3, 0.8, 0.4, 0.9, 0.3)),
    2: ("value", (0.4, 0.9, 0.3, 1.0, 0.3, 0.7)),
    5: ("purple", (0.5, 0.3, 0.7, 0.3, 0.5, 1.0)),
}
_HEADS = ("blue", "green", "purple", "brown")


def one_average_or_several() -> Picture:
    """Draw what one head, and what three heads, return for "cross" from three words."""

    def draw(picture: Drawing) -> None:
        for number, title in enumerate(("One head: one average", "Three heads: three lookups")):
            x, y = (0, 272 * number) if picture.narrow else (352 * number, 0)
            picture.text((x + 166, y + 14), title, bold=True)
            _looks(picture, x, y + 40, number == 1)

    return Picture(
        "The beginning of the sentence twice. On the left, the vectors of “animal”, “didn't” and "
        "“street” are averaged into one vector for “cross”. On the right, each of three heads "
        "reads a shorter vector from one word, and the three are put side by side.",
        draw,
        (688, 264),
        narrow=(360, 536),
    )


def _looks(picture: Drawing, x: Number, y: Number, several: bool) -> None:
    row, cell = 34, (9, 16)
    boxes = [
        picture.box(
            x, y + row * i, 84, 26, word,
            "query" if word == "cross" else "pale", "ground" if word == "cross" else "ink",
            bold=word == "cross",
        )
        for i, word in enumerate(_WORDS)
    ]  # fmt: skip
    size = 30
    left, top = x + 252, y + 8
    parts = []
    for place, (i, (colour, vector)) in enumerate(_READ.items()):
        sent = vector[2 * place : 2 * place + 2] if several else vector
        strip = picture.strip(boxes[i].right[0] + 8, boxes[i].y + 5, sent, colour, cell, largest=1)
        target = (left, top + size * (2 * place + 1)) if several else (left, top + 3 * size)
        picture.arrow((strip.right[0] + 4, strip.right[1]), target, colour=colour, width=2.5)
        parts.append(sent)
        if several:
            picture.grid(left + 3, top + 2 * size * place, [[v] for v in sent], colour,
                         (26, size), largest=1)  # fmt: skip
            picture.text((left + 36, target[1]), f"head {place + 1}", "soft", 13, "start")
    if not several:
        mean = np.mean(parts, axis=0)
        picture.grid(left + 3, top, mean[:, None], "grey", (26, size), largest=1)
        picture.text((left + 38, top + 3 * size), "mean", "soft", 13, "start")
    picture.text((left + 20, y + 6 * row + 4), "for “cross”", "soft", 13)


def multi_head() -> Picture:
    """Draw multi-head attention as the right side of the paper's Figure 2, with its shapes."""

    def draw(picture: Drawing) -> None:
        x, far = (0, 244) if picture.narrow else (110, 420)
        lane, width = 74, 222
        middle = x + width / 2

        def stack(at: Number, y: Number, wide: Number, high: Number, text: str, fill: str) -> Area:
            for back in (12, 6):
                picture.box(at + back, y - back, wide, high, "", "pale", edge="rule")
            return picture.box(at, y, wide, high, text, fill, "ground", edge="rule")

        out = picture.box(x + 56, 46, 110, 30, "Linear", "pale", edge="rule")
        joined = picture.box(x + 56, 108, 110, 30, "Concat", "pale", edge="rule")
        attention = stack(x, 186, 210, 52, "Scaled dot-product\nattention", "grey")
        picture.arrow(out.top, (middle, 24))
        picture.arrow(joined.top, out.bottom)
        picture.arrow((middle, attention.y - 12), joined.bottom)
        for i, (name, colour) in enumerate((("V", "value"), ("K", "key"), ("Q", "query"))):
            linear = stack(x + lane * i, 302, 62, 30, "Linear", colour)
            up = linear.x + 31
            picture.arrow((up, linear.y - 12), (up, attention.y + attention.height))
            picture.arrow((up, 372), linear.bottom)
            picture.text((up, 386), name, colour, bold=True)
        picture.text((x + width + 6, attention.y + 20), "h", size=15, anchor="start")
        notes = (
            (14, "(B, T, 512)", ""),
            (61, "512 × 512", "output matrix"),
            (123, "(B, T, 512)", "8 × 64 = 512"),
            (212, "(B, 8, T, 64)", "softmax per head"),
            (270, "(B, 8, T, 64)", "split"),
            (317, "512 × 512 each", "three matrices"),
            (386, "(B, T, 512)", ""),
        )
        for y, shape, more in notes:
            picture.text((far, y - (8 if more else 0)), shape, size=13, anchor="start")
            if more:
                picture.text((far, y + 9), more, "soft", 12, "start")

    return Picture(
        "From bottom to top: V, K and Q pass through a linear layer per head, then through the "
        "scaled dot-product attentions of h heads side by side; their results are concatenated "
        "and pass through a last linear layer. At the right, the shapes for 8 heads of size 64.",
        draw,
        (688, 402),
        narrow=(372, 402),
    )


def split_and_merge() -> Picture:
    """Draw three positions of eight features split into four heads, and merged in two ways."""
    words, heads, size = ("animal", "didn't", "cross"), 4, 2
    count = len(words)
    # Each cell: the number of its position, and its head; (positions, heads, size, 2).
    number, head, _ = np.broadcast_arrays(
        np.arange(count)[:, None, None] + 1, np.arange(heads)[:, None], np.zeros(size)
    )
    cells = np.stack((number, head), axis=-1)
    apart = cells.transpose(1, 0, 2, 3)
    right = apart.transpose(1, 0, 2, 3).reshape(count, heads * size, 2)
    wrong = apart.reshape(count, heads * size, 2)

    def draw(picture: Drawing) -> None:
        narrow = picture.narrow
        c = 20
        x = 66
        _cells(picture, x, 52, cells.reshape(count, -1, 2), c, words)
        picture.text((x + 80, 16), "(T, d_model) = (3, 8)", bold=True, size=13)
        picture.text((x + 80, 36), "one row per position", "soft", 13)
        at = (x, 180) if narrow else (330, 52)
        for i, block in enumerate(apart):
            place = (at[0] + 56 * i, at[1]) if narrow else (at[0], at[1] + 72 * i)
            _cells(picture, *place, block, c)
            if narrow:
                picture.text((place[0] + c, at[1] + 72), f"head {i + 1}", _HEADS[i], 12)
            else:
                picture.text((at[0] + 50, place[1] + 30), f"head {i + 1}", _HEADS[i], 12, "start")
        title = (x + 104, at[1] - 34) if narrow else (at[0] + 28, 16)
        picture.text(title, "(h, T, d_k) = (4, 3, 2)", bold=True, size=13)
        picture.text((title[0], title[1] + 20), "split: view, then transpose", "soft", 13)
        down = 336 if narrow else 52
        left = x if narrow else 512
        for merged, name, how in (
            (right, "transpose, then flatten", "right merge"),
            (wrong, "reshape without transpose", "wrong merge"),
        ):
            look = "ink" if how == "right merge" else "query"
            picture.text((left + 80, down - 36), how, look, 13,
                         bold=True)  # fmt: skip
            picture.text((left + 80, down - 16), name, "soft", 13)
            _cells(picture, left, down, merged, c, words, how == "wrong merge")
            down += 130 if narrow else 160
        if not narrow:
            picture.arrow((x + 170, 82), (at[0] - 16, 82))
            picture.arrow((at[0] + 104, 82), (left - 66, 82))
            picture.arrow((at[0] + 104, 242), (left - 66, 242))

    return Picture(
        "Three positions of eight features each become four heads, each with all three positions "
        "and two features. Merged with a transpose, each row holds its own position again. "
        "Reshaped without it, the row of “animal” holds features of all three positions.",
        draw,
        (688, 350),
        narrow=(340, 540),
    )


def _cells(
    picture: Drawing,
    x: Number,
    y: Number,
    cells: np.ndarray,
    size: Number,
    words: Sequence[str] = (),
    mark: bool = False,
) -> None:
    """Draw cells (rows, columns, 2) with the number of their position, in their head's colour.

    ``mark`` gives the cells that come from another row's position the colour of queries.
    """
    for i, row in enumerate(cells):
        if len(words) > i:
            picture.text((x - 8, y + size * (i + 0.5)), f"{i + 1} {words[i]}", size=12,
                         anchor="end")  # fmt: skip
        for j, (position, head) in enumerate(row):
            fill = "query" if mark and position != i + 1 else _HEADS[head]
            picture.box(x + size * j, y + size * i, size, size, str(position), fill, "ground",
                        "ground", 3)  # fmt: skip


@cache
def _from_it() -> tuple[list[str], dict[str, np.ndarray]]:
    """Return the words of the running sentence, and each encoder head's weights from "it"."""
    translator = Translator.from_pretrained("tatoeba-en-de")
    found = translator.attention(SENTENCE, "")
    words: list[str] = []
    place = []  # the word of each token
    for token in found.source_tokens:
        if token.startswith("▁") or not words or token in (".", "<eos>"):
            words.append(token.strip("▁").replace("<eos>", "(end)"))
        else:
            words[-1] += token
        place.append(len(words) - 1)
    join = np.eye(len(words))[place]  # (tokens, words)
    it = words.index("it")
    weights = found.encoder[:, :, place.index(it)] @ join
    return words, {f"{i + 1}.{j + 1}": weights[i, j] for i, j in np.ndindex(weights.shape[:2])}


def where_it_looks() -> Picture:
    """Draw where "it" looks in four heads of the shipped model's encoder."""
    words, heads = _from_it()
    animal, it = words.index("animal"), words.index("it")

    def most(place: int) -> str:
        return max(heads, key=lambda name: float(heads[name][place]))

    best = most(animal)
    shown = (
        (most(it + 1), it + 1, "the word after", "blue"),
        (most(it - 1), it - 1, "the word before", "green"),
        (most(len(words) - 1), len(words) - 1, "the end", "brown"),
        (best, animal, f"“animal” gets {heads[best][animal]:.2f}", "purple"),
    )

    def draw(picture: Drawing) -> None:
        row = 25
        for number, (name, _, what, colour) in enumerate(shown):
            weights = heads[name]
            x, y = 174 * number, 0
            if picture.narrow:
                x, y = 190 * (number % 2), 396 * (number // 2)
            picture.text((x + 80, y + 12), f"head {name}", colour, bold=True)
            picture.text((x + 80, y + 32), what, "soft", 13)
            at = [y + 60 + row * i for i in range(len(words))]
            for i, word in enumerate(words):
                lit = {it: "query", animal: "key"}.get(i)
                picture.text((x + 64, at[i]), word, lit or "ink", 13, "end", bold=bool(lit))
            for i in np.argsort(weights):
                if i == it or weights[i] < 0.02:
                    continue
                far = x + 74 + 14 + 8 * abs(int(i) - it)  # bends further for words further away
                points = [
                    ((1 - t) ** 2 * (x + 72) + 2 * t * (1 - t) * far + t**2 * (x + 72),
                     (1 - t) * at[it] + t * at[i])
                    for t in np.linspace(0, 1, 17)
                ]  # fmt: skip
                picture.arrow(*points, colour=colour, tip=False, width=1 + 7 * float(weights[i]))
            for i in {int(weights.argmax()), animal}:
                share = f"{weights[i]:.2f}".lstrip("0")
                faint = weights[i] < 0.02  # no arc to write beside
                beside = 80 if faint else 88 + 4 * abs(i - it)
                height = at[i] if faint else (at[i] + at[it]) / 2
                picture.text((x + beside, height), share, colour, 12, "start", bold=True)

    return Picture(
        "The running sentence four times, in a column, with arcs from “it” to the words it "
        "attends to. "
        + " ".join(
            f"Head {name}: {heads[name][place]:.2f} to “{words[place]}”, {what}."
            for name, place, what, _ in shown[:3]
        )
        + f" Head {best}, which gives “animal” more weight than the other heads do: "
        f"{heads[best][animal]:.2f} to “animal”, at most {heads[best].max():.2f} to a word.",
        draw,
        (688, 376),
        narrow=(372, 772),
    )
