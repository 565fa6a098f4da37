"""Picture of chapter 2: one lookup with its numbers."""

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from transformer import minimal
from transformer.data import toy
from transformer_book.drawing import Drawing, Picture
from transformer_book.toy_translator import trained

HEAD = 1  # the second of two, which finds the noun of a pronoun


def entering(model: Any, sentence: toy.Sentence) -> tuple[list[str], list[str], Tensor, Tensor]:
    """Return English and German words, and the vectors that the last cross-attention gets of each.

    A German word stands for the position that is about to write it.
    """
    source, target = toy.encode(sentence.english), toy.encode(sentence.german())
    found: list[Tensor] = []
    hook = model.decoder[-1].cross_attention.register_forward_pre_hook(
        lambda _, inputs: found.extend(inputs[:2])
    )
    with torch.no_grad():
        model.eval()(torch.tensor([source]), torch.tensor([[minimal.BOS, *target[:-1]]]))
    hook.remove()
    english, german = ([toy.WORDS[i] for i in ids] for ids in (source, target))
    return english, german, found[0][0], found[1][0]


def one_lookup() -> Picture:
    """Draw what a head of the toy translator reads as it writes *es*, from scores to output."""
    model: Any = trained()
    tokens, german, y, memory = entering(model, toy.TIRED)
    layer: Any = model.decoder[-1].cross_attention

    def head(projected: Tensor) -> np.ndarray:
        found: np.ndarray = layer.split(projected[None])[0, HEAD].detach().numpy()
        return found

    query, key = head(layer.query_projection(y)), head(layer.key_projection(memory))
    value = head(layer.value_projection(memory))
    asking = query[german.index("es")]
    score = key @ asking / math.sqrt(key.shape[1])
    power = np.exp(score)
    weight = power / power.sum()
    product = weight[:, None] * value

    def draw(picture: Drawing) -> None:
        narrow = picture.narrow
        x = (70, 119, 157, 200, 251, 317) if narrow else (76, 220, 278, 336, 402, 546)
        vector, number = (1.36 if narrow else 4, 22), (36 if narrow else 46, 22)
        top = 96
        asked = picture.strip(x[0], 10, asking, "query", label="es", cell=vector)
        picture.text((asked.right[0] + 8, 21), "query, 1×32", "query", 13, "start")
        keys = picture.grid(x[0], top, key, "key", rows=tokens, cell=vector)
        scores = picture.grid(x[1], top, score[:, None], "brown", number, digits=1)
        powers = picture.grid(x[2], top, power[:, None], "brown", number, digits=0)
        weights = picture.grid(x[3], top, weight[:, None], "purple", number, digits=2)
        values = picture.grid(x[4], top, value, "value", cell=vector)
        products = picture.grid(x[5], top, product, "value", cell=vector)
        columns = keys, scores, powers, weights, values, products
        names = "keys", "score", "exp", "weight", "values", "product"
        shapes = "13×32", "13×1", "13×1", "13×1", "13×32", "13×32"
        for column, name, shape in zip(columns, names, shapes, strict=True):
            picture.text((column.top[0], top - 30), name, size=13, bold=True)
            picture.text((column.top[0], top - 13), shape, "soft", 12)
        end = top + keys.height + 18
        for column, total in ((powers, f"{power.sum():.0f}"), (weights, "1.00")):
            picture.text((column.bottom[0], end), total, size=13, bold=True)
        picture.text((keys.right[0], end), "sum", "soft", 13, "end")
        picture.text((products.bottom[0] - 8, end), "sum", "soft", 13, "end")
        output = picture.strip(x[5], end + 20, product.sum(axis=0), "value", cell=vector)
        picture.arrow(products.bottom, output.top, colour="value")
        picture.text((x[5] - 8, end + 31), "output, 1×32", "value", 13, "end")
        picture.arrow(asked.bottom, (asked.bottom[0], top - 42), colour="query")

    best = int(weight.argmax())
    return Picture(
        f"The query of “es”, which is to be written, the keys of 13 tokens, a score for each, "
        "its exponential, its weight, the values, and the values times their weights, whose sum "
        f"is the output. The largest weight is {weight[best]:.2f}, for “{tokens[best]}”.",
        draw,
        (688, 448),
        narrow=(372, 448),
    )
