"""Pictures of chapter 24: hops through windows, patterns, segments with memory, cut gradients."""

from collections.abc import Callable

from transformer_book.drawing import Drawing, Number, Picture

#: Tokens of the running sentence in the shipped model.
WORDS = ("The", "animal", "didn", "'t", "cross", "the", "street", "because", "it", "was", "too",
         "tired", ".", "<eos>")  # fmt: skip
#: Positions of a window, to both sides together, its own included.
WINDOW = 9


def chain_of_hops() -> Picture:
    """Draw how "it" gets information from "animal": in one layer, and through windows in two."""

    def draw(picture: Drawing) -> None:
        _hops(picture, 0, 0, "all positions, one layer", (8, 1), len(WORDS))
        x, y = (0, 400) if picture.narrow else (356, 0)
        _hops(picture, x, y, f"window of {WINDOW}, two layers", (8, 4, 1), WINDOW // 2)

    return Picture(
        "The tokens of the sentence, one per row, with one column for the input and one per layer. "
        "With full attention a line leads from “it” in layer 1 to “animal” in the input. With a "
        f"window of {WINDOW} positions, “it” in layer 2 reads “cross” in layer 1, and that has "
        "read “animal” in the input.",
        draw,
        (688, 382),
        narrow=(340, 782),
    )


def _hops(
    picture: Drawing, x: Number, y: Number, title: str, chain: tuple[int, ...], reach: int
) -> None:
    """Draw one column per layer; ``chain`` has the token of each, the last layer first."""
    row, first, step = 24, x + 104, 96
    names = ["input", *(f"layer {number + 1}" for number in range(len(chain) - 1))]
    picture.text((x, y + 10), title, anchor="start", bold=True)

    def place(layer: int, token: int) -> tuple[Number, Number]:
        return first + step * layer, y + 62 + row * token

    for layer, name in enumerate(names):
        picture.text((first + step * layer, y + 38), name, "soft", 12)
    for hop, (query, key) in enumerate(zip(chain, chain[1:], strict=False)):
        layer = len(chain) - 1 - hop
        for token in range(max(0, query - reach), min(len(WORDS), query + reach + 1)):
            if token != key:
                picture.arrow(place(layer, query), place(layer - 1, token), colour="hidden",
                              tip=False)  # fmt: skip
        picture.arrow(place(layer, query), place(layer - 1, key), colour="query", width=3,
                      tip=False)  # fmt: skip
    for token, word in enumerate(WORDS):
        lit = token in (chain[0], chain[-1])
        picture.text((x + 76, y + 62 + row * token), word, "query" if lit else "ink", 13, "end",
                     bold=lit)  # fmt: skip
        for layer in range(len(chain)):
            on = chain[len(chain) - 1 - layer] == token
            at = place(layer, token)
            size = 14 if on else 8
            picture.box(at[0] - size / 2, at[1] - size / 2, size, size, "",
                        "query" if on else "rule", corner=size / 2)  # fmt: skip


def four_patterns() -> Picture:
    """Draw the masks of four sparse patterns for sixteen positions."""
    n, r = 16, 5
    half = r // 2
    patterns: dict[str, Callable[[int, int], str]] = {
        "window": lambda i, j: "key" if abs(i - j) <= half else "",
        "with stride": lambda i, j: (
            "key" if abs(i - j) <= half else "value" if (i - j) % r == 0 else ""
        ),
        "with global token": lambda i, j: (
            "query" if 0 in (i, j) else "key" if abs(i - j) <= half else ""
        ),
        "blocks": lambda i, j: "key" if i // 4 == j // 4 else "",
    }

    def draw(picture: Drawing) -> None:
        cell = 9.5
        for number, (name, rule) in enumerate(patterns.items()):
            across, down = (number % 2, number // 2) if picture.narrow else (number, 0)
            x, y = 176 * across, 216 * down + 28
            count = 0
            picture.text((x, y - 16), name, anchor="start", bold=True)
            for i in range(n):
                for j in range(n):
                    colour = rule(i, j)
                    count += bool(colour)
                    picture.box(x + cell * j, y + cell * i, cell - 1, cell - 1, "",
                                colour or "hidden", corner=1)  # fmt: skip
            picture.text((x, y + cell * n + 14), f"{count} of {n * n} scores", "soft", 13, "start")

    return Picture(
        "Four masks of 16 queries by 16 keys. The window is a band along the diagonal. The stride "
        "adds parallel diagonals, the global token a full first row and column. Blocks are four "
        "squares on the diagonal.",
        draw,
        (688, 206),
        narrow=(340, 424),
    )


def segments_with_memory() -> Picture:
    """Draw two layers over three segments, each of which reads the stored states before it."""

    def draw(picture: Drawing) -> None:
        wide, step = (84, 132) if picture.narrow else (150, 246)
        left = 24 if picture.narrow else 20
        rows = {"layer 2": 34, "layer 1": 124, "tokens": 214}
        for segment in range(3):
            x = left + step * segment
            for name, y in rows.items():
                fill = "pale" if name == "tokens" else "value" if segment == 2 else "key"
                ink = "ink" if name == "tokens" else "ground"
                picture.box(x, y, wide, 40, name, fill, ink)
            for y in (124, 34):
                picture.arrow((x + wide / 2, y + 90), (x + wide / 2, y + 41), colour="value",
                              width=2.5)  # fmt: skip
                if segment < 2:
                    picture.arrow((x + wide, y + 100), (x + step + 8, y + 42), colour="key",
                                  width=2.5)  # fmt: skip
            picture.text((x + wide / 2, 16), f"segment {segment + 1}", bold=True)
            if segment:
                picture.arrow((x - (step - wide) / 2, 28), (x - (step - wide) / 2, 258),
                              colour="query", tip=False)  # fmt: skip
        middle = picture.width / 2
        picture.text((middle, 278), "blue: stored, read without gradient", "key", 13)
        picture.text((middle, 298), "green: inside a segment, with gradient", "value", 13)

    return Picture(
        "Three segments side by side, each with tokens, layer 1 and layer 2. Within a segment, "
        "arrows lead upwards; the gradient flows back through them. From each segment, arrows "
        "lead to the next higher layer of the following segment; the states they carry are "
        "stored, and no gradient flows back. Lines mark the borders.",
        draw,
        (688, 312),
        narrow=(372, 312),
    )


def cut_gradient() -> Picture:
    """Draw a recurrent network over nine positions, its gradient cut after every three."""

    def draw(picture: Drawing) -> None:
        size, step = (30, 41) if picture.narrow else (44, 75)
        y = 44
        for place in range(9):
            x = 4 + step * place
            box = picture.box(x, y, size, 36, str(place + 1), "key", "ground", bold=True)
            if place < 8:
                picture.arrow(box.right, (x + step - 1, y + 18), tip=not picture.narrow)
            cut = place % 3 == 0
            if place and not cut:
                picture.arrow((x + size / 2, y + 56), (x - step + size / 2, y + 56),
                              colour="query", width=2.5)  # fmt: skip
            if place and cut:
                border = x - (step - size) / 2
                picture.arrow((border, y - 12), (border, y + 70), colour="ink", width=2, tip=False)
        picture.text((4, 14), "the state passes", "ink", 13, "start")
        picture.text((4, y + 84), "the gradient stops at the border", "query", 13, "start")

    return Picture(
        "Nine states of a recurrent network in a row. Arrows lead from each to the next. Below, "
        "arrows lead back, but only within groups of three: two lines cut them.",
        draw,
        (688, 144),
        narrow=(372, 144),
    )
