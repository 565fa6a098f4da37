"""Pictures of chapter 4: one query with three divisors, sums that spread, a softmax that saturates.

Every number in them is computed: from the shipped model, or from vectors drawn with a fixed seed.
"""

from functools import lru_cache
from math import sqrt

import torch
from torch import Tensor

from transformer.inference.translator import Translator
from transformer_book.drawing import Drawing, Number, Picture
from transformer_book.pictures import SENTENCE

LAYER, HEAD = 1, 0  # of the encoder, counted from 0


@lru_cache(maxsize=1)
def scores_of_it() -> tuple[list[str], Tensor]:
    """Return the tokens of the sentence, and the scores of "it" in a head of the shipped model.

    Returns:
        S tokens, and S dot products without the division.
    """
    translator = Translator.from_pretrained("tatoeba-en-de")
    tokenizer, model = translator.tokenizer, translator.model
    tokens = [*tokenizer.encode(SENTENCE), tokenizer.eos_id]
    attention = model.encoder[LAYER].self_attention  # type: ignore[index, union-attr]
    seen: list[Tensor] = []
    handle = attention.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    with torch.no_grad():
        model.encode(torch.tensor([tokens]))
        handle.remove()
        query, (key, _) = attention.project_query(seen[0]), attention.project_memory(seen[0])
    words = [word.strip("\u2581") for word in tokenizer.tokens(tokens)]
    return words, query[0, HEAD, words.index("it")] @ key[0, HEAD].T


def three_divisors() -> Picture:
    """Draw the weights of "it" without a division, divided by sqrt(64), and divided by 64."""
    words, scores = scores_of_it()
    columns = ("undivided", 1), ("÷ √64 = 8", 8), ("÷ 64", 64)

    def draw(picture: Drawing) -> None:
        left, lane, gap = (108, 84, 8) if picture.narrow else (150, 170, 14)
        row, top = 25, 50
        picture.text((left - 12, 32), "score", "soft", 13, "end")
        for i, (word, score) in enumerate(zip(words, scores.tolist(), strict=True)):
            y = top + row * i + 10
            lit = word == "it"
            picture.text((0, y), word, "query" if lit else "ink", 13, "start", bold=lit)
            picture.text((left - 12, y), f"{score:.1f}", "soft", 13, "end")
        for number, (name, divisor) in enumerate(columns):
            x = left + (lane + gap) * number
            picture.text((x, 12), name, size=13, anchor="start", bold=True)
            picture.text((x, 32), "weights", "soft", 13, "start")
            for i, weight in enumerate((scores / divisor).softmax(dim=0).tolist()):
                y = top + row * i
                room = lane - 36
                picture.box(x, y, room, 20, fill="pale", corner=3)
                if room * weight >= 0.5:
                    picture.box(x, y, room * weight, 20, fill="key", corner=3)
                picture.text((x + room + 5, y + 10), f"{weight:.2f}", size=12, anchor="start")

    height = 50 + 25 * len(words)
    return Picture(
        "The scores of “it” against the tokens of its sentence, and three columns of weights. Not "
        "divided, one token gets nearly all weight; divided by 8, several tokens share; divided by "
        "64, all get between 0.05 and 0.10.",
        draw,
        (688, height),
        narrow=(378, height),
    )


def growing_sums() -> Picture:
    """Draw dot products of random vectors as sums that grow term by term, for 24 pairs."""
    generator = torch.Generator().manual_seed(0)
    query, key = torch.randn(2, 24, 256, generator=generator)
    sums = (query * key).cumsum(dim=1)

    def draw(picture: Drawing) -> None:
        left, width, middle, unit = 44, picture.width - 100, 150, 2.6

        def place(terms: Number, height: Number) -> tuple[Number, Number]:
            return left + width * terms / 256, middle - unit * height

        for height in (-40, -20, 0, 20, 40):
            y = place(0, height)[1]
            picture.arrow((left, y), (left + width, y), colour="hidden", width=1, tip=False)
            picture.text((left - 8, y), f"{height}", "soft", 13, "end")
        for i, one in enumerate(sums.tolist()):
            points = [(0, 0.0), *((t, one[t - 1]) for t in range(4, 257, 4))]
            look = dict(colour="key", width=2.5) if i == 0 else dict(colour="rule", width=1)
            picture.arrow(*(place(*each) for each in points), tip=False, **look)  # type: ignore[arg-type]
        for sign in (1, -1):
            curve = [place(t, sign * sqrt(t)) for t in range(0, 257, 4)]
            picture.arrow(*curve, colour="query", width=2.5, tip=False)
            label = "+√d_k" if sign > 0 else "\u2212√d_k"
            end = curve[-1]
            picture.text((end[0] + 6, end[1]), label, "query", 14, "start", bold=True)
        for terms in (64, 128, 192, 256):
            x = place(terms, 0)[0]
            picture.text((x, 278), str(terms), "soft", 13)
        picture.text((left, 14), "sum so far", "soft", 13, "start")
        picture.text((left + width / 2, 300), "number of terms, d_k", "soft", 13)

    return Picture(
        "24 dot products of random vectors, drawn as sums that grow term by term. "
        "They spread apart; most stay between the curves of plus and minus the square root "
        "of the number of terms.",
        draw,
        (688, 312),
        narrow=(360, 312),
    )


def saturation() -> Picture:
    """Draw the softmax of three scores and its derivatives, as the scores are multiplied."""
    scores = torch.tensor([1.0, 0.0, -1.0])

    def draw(picture: Drawing) -> None:
        for number, factor in enumerate((1, 4, 16)):
            x, y = (62, 168 * number) if picture.narrow else (1 + 230 * number, 0)
            weights = (factor * scores).softmax(dim=0)
            jacobian = torch.diag(weights) - torch.outer(weights, weights)
            given = ", ".join(f"{score:.0f}" for score in (factor * scores).tolist())
            picture.text((x, y + 14), f"scores {given}", anchor="start", bold=True)
            for i, weight in enumerate(weights.tolist()):
                top = y + 52 + 30 * i
                picture.box(x, top, 56, 26, fill="pale", corner=3)
                if weight > 0.01:
                    picture.box(x, top, 56 * weight, 26, fill="key", corner=3)
            picture.text((x, y + 38), "weights", "soft", 13, "start")
            picture.text((x + 68, y + 38), "derivatives", "soft", 13, "start")
            picture.grid(
                x + 68, y + 52, jacobian.numpy(), "green", (50, 30), digits=2, largest=0.25
            )

    return Picture(
        "Three softmaxes. For the scores 1, 0, -1 all three weights are visible, and the "
        "derivatives of the weights with respect to the scores are up to 0.22. For 4, 0, -4 they "
        "are up to 0.02; for 16, 0, -16 one weight is 1, and every derivative is 0.00.",
        draw,
        (688, 150),
        narrow=(344, 486),
    )
