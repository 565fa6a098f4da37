"""Picture of chapter 17: the n-grams of a translation that BLEU finds in its reference."""

from transformer_book.drawing import Drawing, Number, Picture

#: Two correct translations of the running sentence, cut into tokens.
TRANSLATION = ("Das", "Tier", "überquerte", "die", "Straße", "nicht", ",", "weil", "es", "zu",
               "müde", "war", ".")  # fmt: skip
REFERENCE = ("Das", "Tier", "hat", "die", "Straße", "nicht", "überquert", ",", "weil", "es", "zu",
             "müde", "war", ".")  # fmt: skip


def shared_ngrams() -> Picture:
    """Draw two translations of the running sentence, and the n-grams of one in the other."""

    def draw(picture: Drawing) -> None:
        row, top = 24, 56
        word, gap, bar, columns = (
            (78, 16, 8, (46, 46, 48, 52)) if picture.narrow else (104, 84, 14, (70, 84, 92, 100))
        )
        ours = word + gap
        picture.text((word / 2, 12), "reference", "soft", 13)
        picture.text((ours + word / 2, 12), "translation", "soft", 13)
        for x, words, others in ((0, REFERENCE, TRANSLATION), (ours, TRANSLATION, REFERENCE)):
            for i, text in enumerate(words):
                known = text in others
                picture.box(x, top + row * i, word, row - 4, fill="pale",
                            edge="value" if known else "", corner=4)  # fmt: skip
                picture.text((x + word / 2, top + row * i + row / 2 - 2), text, size=13, bold=known)
        for i, text in enumerate(TRANSLATION):
            if text in REFERENCE:
                start = word, top + row * REFERENCE.index(text) + row / 2 - 2
                end = ours, top + row * i + row / 2 - 2
                picture.arrow(start, end, colour="value", width=2, tip=False)
        left = ours + word + (8 if picture.narrow else 26)
        for n, width in enumerate(columns, start=1):
            _bars(picture, left, width, n, bar, (top, row))
            left += width

    return Picture(
        "Two German translations of the sentence, one token per row: a reference with 14 tokens "
        "and a translation with 13. Lines join the 12 tokens that both have. Beside the "
        "translation, bars show its runs of one to four tokens; those that occur in the reference "
        "are filled: 12 of 13, 9 of 12, 6 of 11 and 4 of 10.",
        draw,
        (666, 400),
        narrow=(374, 400),
    )


def _bars(
    picture: Drawing,
    x: Number,
    width: Number,
    n: int,
    bar: Number,
    rows: tuple[Number, Number],
) -> None:
    """Draw the n-grams of the translation as bars; neighbours overlap, so they are side by side."""
    top, row = rows
    known = {REFERENCE[i : i + n] for i in range(len(REFERENCE) - n + 1)}
    starts = range(len(TRANSLATION) - n + 1)
    left = x + (width - n * bar - (n - 1) * 2) / 2
    found = 0
    for i in starts:
        shared = TRANSLATION[i : i + n] in known
        found += shared
        picture.box(
            left + (i % n) * (bar + 2), top + row * i + 2, bar, row * n - 8,
            fill="value" if shared else "ground", edge="value" if shared else "rule", corner=3,
        )  # fmt: skip
    picture.text((x + width / 2, 12), f"n = {n}", "soft", 12)
    picture.text((x + width / 2, 34), f"{found}/{len(starts)}", bold=True, size=13)
