"""Picture of chapter 2: one lookup with its numbers."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from transformer.inference.translator import Translator
from transformer_book.drawing import Drawing, Picture
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
