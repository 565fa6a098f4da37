"""Picture of chapter 26: one encoder with four heads."""

from functools import cache
from typing import Any

import numpy as np
import torch

from transformer.inference.translator import Translator
from transformer_book.drawing import Area, Drawing, Number, Picture
from transformer_book.pictures import SENTENCE

_WORDS = ("The", "animal", "didn't", "cross", "the", "street")
_SUBJECT = (0, 1)  # first and last word of "The animal"
_TAGS = "DNVVDN"  # determiners, nouns, verbs
_NUMBERS = 8  # of each output vector that the picture shows


@cache
def _outputs() -> np.ndarray:
    """Return what the shipped model's encoder puts out at the last token of each word."""
    translator = Translator.from_pretrained("tatoeba-en-de")
    model: Any = translator.model.eval()
    ids = translator.tokenizer.encode(SENTENCE)
    with torch.no_grad():
        y = model.encode(torch.tensor([[*ids, model.config.eos_id]]))[0].numpy()
    word, ends = -1, {}
    for i, token in enumerate(translator.tokenizer.tokens(ids)):
        word += token.startswith("▁")
        ends[word] = i
    return y[[ends[i] for i in range(len(_WORDS))], :_NUMBERS]


def one_encoder() -> Picture:
    """Draw six words, one encoder, and four heads that read its output vectors."""
    y = _outputs()

    def draw(picture: Drawing) -> None:
        narrow = picture.narrow
        step = 62 if narrow else 108
        left = 0 if narrow else 20
        words = picture.tokens(_WORDS, left, 0, step, size=(0.88, 26))
        bar = picture.box(
            0, 46, picture.width, 32, "encoder layers, the same for all four", "key", "ground",
            bold=True,
        )  # fmt: skip
        cell = (6, 16) if narrow else (9, 16)
        for word, values in zip(words, y, strict=True):
            x = word.bottom[0]
            picture.arrow(word.bottom, (x, bar.y))
            picture.arrow((x, bar.bottom[1]), (x, 98))
            picture.strip(
                x - cell[0] * _NUMBERS / 2, 100, values, "key", cell,
                largest=float(np.abs(y).max()),
            )  # fmt: skip
        width = 186 if narrow else 172
        for number, panel in enumerate((_label, _number, _labels, _span)):
            row, column = divmod(number, 2) if narrow else (0, number)
            panel(picture, column * width + 4, 136 + 176 * row, width - 12)

    return Picture(
        "Six words of the sentence pass through the same encoder layers, which return one vector "
        "per word. Below, four heads read these vectors: a label from the mean of all vectors, a "
        "number from the last vector, a label per token from each vector, and a span from two "
        "scores per vector, one for its start and one for its end.",
        draw,
        (688, 308),
        narrow=(372, 484),
    )


def _vectors(picture: Drawing, x: Number, y: Number, width: Number, title: str) -> list[Area]:
    """Draw the frame of a panel, its title, and six small boxes for the vectors."""
    picture.box(x, y, width, 166, "", "ground", edge="rule")
    picture.text((x + width / 2, y + 16), title, bold=True)
    step = (width - 16) / len(_WORDS)
    return [
        picture.box(x + 8 + step * (i + 0.15), y + 34, step * 0.7, 12, "", "key", corner=2)
        for i in range(len(_WORDS))
    ]


def _label(picture: Drawing, x: Number, y: Number, width: Number) -> None:
    vectors = _vectors(picture, x, y, width, "a label")
    middle = x + width / 2
    mean = picture.box(middle - 30, y + 70, 60, 24, "mean", "pale")
    for vector in vectors:
        picture.arrow(vector.bottom, mean.top, tip=False)
    for i in range(10):
        lit = i == 3
        box = picture.box(
            middle - 70 + 14 * i, y + 114, 12, 20, str(i) if lit else "",
            "query" if lit else "pale", "ground", corner=2, bold=True,
        )  # fmt: skip
        if lit:
            picture.arrow(mean.bottom, box.top)
    picture.text((middle, y + 150), "which topic?", "soft", 12)


def _number(picture: Drawing, x: Number, y: Number, width: Number) -> None:
    vectors = _vectors(picture, x, y, width, "a number")
    last = vectors[-1].bottom
    box = picture.box(x + width - 84, y + 112, 76, 22, "w · y + b", "query", "ground", bold=True)
    picture.arrow(last, (last[0], box.y))
    picture.text((x + width / 2, y + 150), "how many seconds?", "soft", 12)


def _labels(picture: Drawing, x: Number, y: Number, width: Number) -> None:
    vectors = _vectors(picture, x, y, width, "a label per token")
    for vector, tag in zip(vectors, _TAGS, strict=True):
        box = picture.box(
            vector.x - 2, y + 112, vector.width + 4, 22, tag, "query", "ground", corner=3, bold=True
        )
        picture.arrow(vector.bottom, box.top)
    picture.text((x + width / 2, y + 150), "determiner, noun, verb", "soft", 12)


def _span(picture: Drawing, x: Number, y: Number, width: Number) -> None:
    vectors = _vectors(picture, x, y, width, "a span")
    for i, (name, colour) in zip(_SUBJECT, (("start", "query"), ("end", "value")), strict=True):
        across = x + (34 if name == "start" else 92)
        box = picture.box(across - 26, y + 112, 52, 22, name, colour, "ground", bold=True)
        picture.arrow(box.top, (vectors[i].bottom[0], vectors[i].bottom[1] + 2), colour=colour)
    picture.text((x + width / 2, y + 150), "who? “The animal”", "soft", 12)
