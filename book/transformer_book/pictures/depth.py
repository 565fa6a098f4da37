"""Picture of chapter 9: what a residual connection keeps."""

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
                colour = "brown" if name == "update" else "purple"
                picture.strip(middle - wide / 2, top, vectors[name], colour, cell, largest=largest)

            picture.text((middle - wide / 2 - 8, y + 50), f"“{_WORD}”", anchor="end", bold=True)
            strip("x", y + 40)
            picture.arrow((middle, y + 62), (middle, y + 88))
            box = picture.box(middle - 60, y + 90, 120, 28, "self-attention")
            picture.arrow(box.bottom, (middle, y + 144))
            strip("update", y + 146)
            if not residual:
                like = f"cosine with “{_WORD}”: {cosines['update']:.2f}"
                picture.text((middle, y + 188), like, "brown", bold=True)
                continue
            side, plus = middle + wide / 2 + 34, y + 194
            picture.arrow((middle + wide / 2 + 2, y + 50), (side, y + 50), (side, plus),
                          (middle + 15, plus), colour="soft", width=3)  # fmt: skip
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
