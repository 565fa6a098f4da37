"""Pictures of chapter 9: what a residual connection keeps, and the two places of the norm."""

from functools import cache

import torch
import torch.nn.functional as F

from transformer.inference.translator import Translator
from transformer.model.transformer import Transformer
from transformer_book.drawing import Drawing, Number, Picture
from transformer_book.pictures import SENTENCE

_WORD, _SHOWN = "it", 16


@cache
def _measured() -> tuple[dict[str, list[float]], dict[str, float]]:
    """Return vectors of "it" in the shipped model's first sub-layer, and their cosines with it."""
    translator = Translator.from_pretrained("tatoeba-en-de")
    model, tokenizer = translator.model, translator.tokenizer
    assert isinstance(model, Transformer)
    numbers = [*tokenizer.encode(SENTENCE), tokenizer.eos_id]
    place = tokenizer.tokens(numbers).index(f"\u2581{_WORD}")
    with torch.no_grad():
        x = model.positions(model.embedding(torch.tensor([numbers])))
        update = model.encoder[0].self_attention(x)
    vectors = dict(x=x, update=update, sum=x + update)
    here = {name: vector[0, place] for name, vector in vectors.items()}
    cosines = {name: float(F.cosine_similarity(v, here["x"], dim=0)) for name, v in here.items()}
    return {name: vector[:_SHOWN].tolist() for name, vector in here.items()}, cosines


def keeps_itself() -> Picture:
    """Draw "it" before and after self-attention, with and without a residual connection."""
    vectors, cosines = _measured()
    largest = max(abs(x) for vector in vectors.values() for x in vector)

    def draw(picture: Drawing) -> None:
        cell = 9, 20
        wide = cell[0] * _SHOWN
        for number, residual in enumerate((False, True)):
            x, y = (0, 216 * number) if picture.narrow else (344 * number, 0)
            panel = 344
            middle = x + panel / 2 + (10 if residual else 0)
            picture.text((x + panel / 2, y + 14), "With a residual connection" if residual
                         else "Without a residual connection", bold=True)  # fmt: skip

            def strip(name: str, top: Number, middle: Number = middle) -> None:
                colour = "query" if name == "x" else "key" if name == "update" else "purple"
                picture.strip(middle - wide / 2, top, vectors[name], colour, cell, largest=largest)

            picture.text((middle - wide / 2 - 8, y + 50), f"“{_WORD}”", anchor="end", bold=True)
            strip("x", y + 40)
            picture.arrow((middle, y + 62), (middle, y + 88))
            box = picture.box(middle - 60, y + 90, 120, 28, "self-attention")
            picture.arrow(box.bottom, (middle, y + 144))
            strip("update", y + 146)
            if not residual:
                like = f"cosine with “{_WORD}”: {cosines['update']:.2f}"
                picture.text((middle, y + 188), like, "key", bold=True)
                continue
            side, plus = middle + wide / 2 + 34, y + 194
            picture.arrow((middle + wide / 2 + 2, y + 50), (side, y + 50), (side, plus),
                          (middle + 15, plus), colour="query", width=3)  # fmt: skip
            picture.arrow((middle, y + 168), (middle, plus - 13))
            picture.box(middle - 12, plus - 12, 24, 24, "+", "pale", edge="rule", corner=12)
            picture.arrow((middle, plus + 13), (middle, plus + 34))
            strip("sum", plus + 36)
            like = f"cosine with “{_WORD}”: {cosines['sum']:.2f}"
            picture.text((middle, plus + 76), like, "purple", bold=True)

    return Picture(
        f"The vector of “{_WORD}” passes through self-attention. Without a residual connection "
        f"the output replaces it, and has a cosine of {cosines['update']:.2f} with it. With one, "
        f"the output is added to it, and the sum has a cosine of {cosines['sum']:.2f} with it.",
        draw,
        (688, 286),
        narrow=(344, 502),
    )


def post_and_pre() -> Picture:
    """Draw one sub-layer with post-norm and with pre-norm, and where dropout is applied."""

    def draw(picture: Drawing) -> None:
        for number, pre in enumerate((False, True)):
            x, y = (0, 342 * number) if picture.narrow else (344 * number, 0)
            _block(picture, x, y, pre)

    return Picture(
        "Two ways to wrap a sub-layer. Post-norm: the vector x takes the residual path and also "
        "passes through the sub-layer and dropout; both are added, and the layer norm follows on "
        "the residual path. Pre-norm: the layer norm is in the branch, before the sub-layer, and "
        "the residual path has only the sum.",
        draw,
        (688, 336),
        narrow=(344, 678),
    )


def _block(picture: Drawing, x: Number, y: Number, pre: bool) -> None:
    road, branch, wide = x + 92, x + 228, 124
    title = "Pre-norm: x + Dropout(f(Norm(x)))" if pre else "Post-norm: Norm(x + Dropout(f(x)))"
    picture.text((x + 172, y + 14), title, bold=True)
    bottom, top = y + 316, y + 40
    steps = ["layer norm", "sub-layer f", "dropout"] if pre else ["sub-layer f", "dropout"]
    fork, plus = bottom - 30, y + (74 if pre else 124)
    fill = {"layer norm": "value", "sub-layer f": "key", "dropout": "pale"}
    picture.text((road, bottom + 8), "x", bold=True)
    ends = [(road, plus + 14)]
    picture.arrow((road, bottom - 4), *ends, colour="query", width=4)
    height, room = 30, fork - plus
    picture.arrow((road, fork), (branch, fork), colour="rule", width=2, tip=False)
    below: tuple[Number, Number] = branch, fork
    for i, name in enumerate(steps):
        at = fork - room * (i + 0.75) / (len(steps) + 0.35) - height / 2
        colour = "ink" if name == "dropout" else "ground"
        box = picture.box(branch - wide / 2, at, wide, height, name, fill[name], colour,
                          edge="rule" if name == "dropout" else "")  # fmt: skip
        picture.arrow(below, box.bottom, width=2)
        below = box.top
    picture.arrow(below, (branch, plus), (road + 15, plus), width=2)
    picture.box(road - 13, plus - 13, 26, 26, "+", "pale", edge="rule", corner=13)
    if pre:
        picture.arrow((road, plus - 14), (road, top - 6), colour="query", width=4)
        return
    norm = picture.box(road - wide / 2, plus - 62, wide, height, "layer norm", "value", "ground")
    picture.arrow((road, plus - 14), norm.bottom, colour="query", width=4)
    picture.arrow(norm.top, (road, top - 6), colour="query", width=4)
