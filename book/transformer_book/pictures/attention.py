"""Pictures of chapter 2: one lookup with its numbers, Figure 2 (left), and where Q, K, V come from.

Paper: section 3.2, Figure 2
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from transformer.inference.translator import Translator
from transformer_book.drawing import Drawing, Number, Picture
from transformer_book.pictures import SENTENCE

_HEADS, _HEAD = 4, 3  # heads of the shipped model's first layer, index of the one shown


def one_lookup() -> Picture:
    """Draw attention for "it" in one head of the shipped model, from the scores to the output."""
    tokens, (query, key, value) = _lookup()
    it = tokens.index("it")
    score = key @ query[it] / math.sqrt(key.shape[1])
    power = np.exp(score)
    weight = power / power.sum()
    product = weight[:, None] * value

    def draw(picture: Drawing) -> None:
        narrow = picture.narrow
        x = (70, 119, 157, 200, 251, 317) if narrow else (76, 220, 278, 336, 402, 546)
        vector, number = (0.68 if narrow else 2, 22), (36 if narrow else 46, 22)
        top = 96
        asked = picture.strip(x[0], 10, query[it], "query", label="it", cell=vector)
        picture.text((asked.right[0] + 8, 21), "query, 1×64", "query", 13, "start")
        keys = picture.grid(x[0], top, key, "key", rows=tokens, cell=vector)
        scores = picture.grid(x[1], top, score[:, None], "brown", number, digits=1)
        powers = picture.grid(x[2], top, power[:, None], "brown", number, digits=1)
        weights = picture.grid(x[3], top, weight[:, None], "purple", number, digits=2)
        values = picture.grid(x[4], top, value, "value", cell=vector)
        products = picture.grid(x[5], top, product, "value", cell=vector)
        columns = keys, scores, powers, weights, values, products
        names = "keys", "score", "exp", "weight", "values", "product"
        shapes = "14×64", "14×1", "14×1", "14×1", "14×64", "14×64"
        for column, name, shape in zip(columns, names, shapes, strict=True):
            picture.text((column.top[0], top - 30), name, size=13, bold=True)
            picture.text((column.top[0], top - 13), shape, "soft", 12)
        end = top + keys.height + 18
        for column, total in ((powers, f"{power.sum():.1f}"), (weights, "1.00")):
            picture.text((column.bottom[0], end), total, size=13, bold=True)
        picture.text((keys.right[0], end), "sum", "soft", 13, "end")
        picture.text((products.bottom[0] - 8, end), "sum", "soft", 13, "end")
        output = picture.strip(x[5], end + 20, product.sum(axis=0), "value", cell=vector)
        picture.arrow(products.bottom, output.top, colour="value")
        picture.text((x[5] - 8, end + 31), "output, 1×64", "value", 13, "end")
        picture.arrow(asked.bottom, (asked.bottom[0], top - 42), colour="query")

    best = int(weight.argmax())
    return Picture(
        f"The query of “it”, the keys of 14 tokens, a score for each, its exponential, its weight, "
        f"the values, and the values times their weights, whose sum is the output. The largest "
        f"weight is {weight[best]:.2f}, for “{tokens[best]}”; “animal” gets "
        f"{weight[tokens.index('animal')]:.2f} and “it” itself {weight[it]:.2f}.",
        draw,
        (688, 470),
        narrow=(372, 470),
    )


def _lookup() -> tuple[list[str], Sequence[np.ndarray]]:
    """Return the tokens of the sentence and their queries, keys and values, (tokens, 64) each."""
    translator = Translator.from_pretrained("tatoeba-en-de")
    model: Any = translator.model.eval()
    tokenizer = translator.tokenizer
    ids = [*tokenizer.encode(SENTENCE), tokenizer.eos_id]
    layer = model.encoder[0].self_attention
    projections = layer.query_projection, layer.key_projection, layer.value_projection
    with torch.no_grad():
        x = model.positions(model.embedding(torch.tensor([ids])))[0]
        parts = [
            project(x).unflatten(-1, (_HEADS, -1))[:, _HEAD].numpy() for project in projections
        ]
    return [token.strip("▁") for token in tokenizer.tokens(ids)], parts


def scaled_dot_product() -> Picture:
    """Draw the left side of Figure 2, with the code and the shape of each step."""
    steps = (
        ("MatMul", "query @ key.T", "T×S", "pale"),
        ("Scale", "/ sqrt(d_k)", "T×S", "pale"),
        ("Mask (optional)", "see chapter 6", "T×S", "ground"),
        ("SoftMax", ".softmax(dim=-1)", "T×S", "pale"),
        ("MatMul", "weights @ value", "T×d_v", "pale"),
    )

    def draw(picture: Drawing) -> None:
        width, pitch, height = (138, 52, 30) if picture.narrow else (170, 52, 30)
        x, bottom = (4 if picture.narrow else 70), 290
        boxes = []
        for i, (name, code, shape, fill) in enumerate(steps):
            y = bottom - pitch * i
            box = picture.box(x, y, width, height, name, fill, edge="rule", bold=True)
            boxes.append(box)
            end = picture.width - (4 if picture.narrow else 90)
            picture.text((x + width + (26 if picture.narrow else 56), y + 15), code, anchor="start")
            picture.text((end, y + 15), shape, "soft", anchor="end")
        for one, other in zip(boxes, boxes[1:], strict=False):
            picture.arrow(one.top, other.bottom, colour="purple" if other is boxes[-1] else "brown",
                          width=2.5)  # fmt: skip
        first, last = boxes[0], boxes[-1]
        picture.arrow(last.top, (last.top[0], last.y - 30), colour="value", width=2.5)
        picture.text((last.top[0] + 12, last.y - 20), "output", "value", anchor="start", bold=True)
        low = bottom + height + 34
        for share, name, shape, role in (
            (0.25, "Q", "T×d_k", "query"), (0.75, "K", "S×d_k", "key")
        ):  # fmt: skip
            at = x + width * share
            picture.arrow((at, low), (at, first.y + height), colour=role, width=2.5)
            _source(picture, at, low, name, shape, role)
        at, side = x + width + 14, last.right[1]
        picture.arrow((at, low), (at, side), (last.right[0], side), colour="value", width=2.5)
        _source(picture, at + (12 if picture.narrow else 0), low, "V", "S×d_v", "value")

    return Picture(
        "Five boxes from bottom to top: a matrix product of Q and K, a division, an optional mask, "
        "a softmax, and a matrix product with V. Beside each box is its code and the shape of what "
        "comes out.",
        draw,
        (688, 392),
        narrow=(372, 392),
    )


def _source(picture: Drawing, x: Number, y: Number, name: str, shape: str, role: str) -> None:
    picture.text((x, y + 13), name, role, 16, bold=True)
    picture.text((x, y + 31), shape, "soft", 13)


def self_and_cross() -> Picture:
    """Draw where queries, keys and values come from: one sentence, or two."""
    english, german = "The animal didn't\ncross the street", "Das Tier\nüberquerte"

    def draw(picture: Drawing) -> None:
        panel = 360 if picture.narrow else 324
        for number, title in enumerate(("Self-attention", "Cross-attention")):
            x, y = (0, 228 * number) if picture.narrow else (364 * number, 0)
            picture.text((x + panel / 2, y + 12), title, bold=True)
            if number:
                target = picture.box(x, y + 164, panel * 0.36, 44, german)
                source = picture.box(x + panel * 0.42, y + 164, panel * 0.58, 44, english)
                ends = (target, 0.5), (source, 0.3), (source, 0.7)
            else:
                source = picture.box(x, y + 164, panel, 44, english)
                ends = (source, 0.18), (source, 0.5), (source, 0.82)
            for (box, share), name, role in zip(
                ends, ("Q", "K", "V"), ("query", "key", "value"), strict=True
            ):
                middle = box.x + share * box.width
                matrix = picture.box(
                    middle - 22, y + 104, 44, 32, "W", "ground", role, edge=role, bold=True
                )
                made = picture.box(middle - 30, y + 38, 60, 36, name, role, "ground", bold=True)
                picture.arrow((middle, box.y), matrix.bottom, colour=role, width=2.5)
                picture.arrow(matrix.top, made.bottom, colour=role, width=2.5)

    return Picture(
        "Two panels. In self-attention, queries, keys and values are made from the same sentence "
        "by three different matrices. In cross-attention, queries are made from the German words "
        "so far, and keys and values from the English sentence.",
        draw,
        (688, 214),
        narrow=(360, 442),
    )
