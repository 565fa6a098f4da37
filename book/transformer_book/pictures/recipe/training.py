"""Picture of chapter 15: targets and predictions."""

from functools import cache

import numpy as np
import torch

from transformer.inference.translator import Translator
from transformer_book.drawing import Drawing, Number, Picture
from transformer_book.pictures import SENTENCE

_ROWS = 6  # tokens of the translation in the picture


@cache
def _predicted() -> tuple[list[str], list[str], np.ndarray]:
    """Return given and next tokens, and the probabilities of the six next tokens and the rest."""
    translator = Translator.from_pretrained("tatoeba-en-de")
    model, tokenizer = translator.model.eval(), translator.tokenizer
    (german,) = translator.translate([SENTENCE])
    target = [model.config.bos_id, *tokenizer.encode(german)]
    source = torch.tensor([[*tokenizer.encode(SENTENCE), model.config.eos_id]])
    with torch.no_grad():
        p = model(source, torch.tensor([target]))[0, :_ROWS].softmax(dim=-1)
    names = [token.strip("▁") for token in tokenizer.tokens(target[: _ROWS + 1])]
    shown = p[:, target[1 : _ROWS + 1]]
    others = 1 - shown.sum(dim=1, keepdim=True)
    return names[:-1], names[1:], torch.cat([shown, others], dim=1).numpy()


def target_and_prediction() -> Picture:
    """Draw the one-hot targets of six positions beside the shipped model's probabilities."""
    given, following, p = _predicted()
    losses = -np.log(np.diagonal(p))

    def draw(picture: Drawing) -> None:
        row, label, cell = 30, 62, 38
        left, top = label, 84

        def names(x: Number, y: Number) -> None:
            picture.text((x - 8, y - 16), "after", "soft", 12, "end")
            for i, name in enumerate(given):
                picture.text((x - 8, y + row * (i + 0.5)), name, size=13, anchor="end")

        def columns(x: Number, y: Number, width: Number, more: tuple[str, ...] = ()) -> None:
            for j, name in enumerate((*following, *more)):
                colour = "soft" if j == _ROWS else "ink"
                picture.text((x + width * (j + 0.5), y - 16), name, colour, 11.5)

        wide = 46 if picture.narrow else cell
        picture.text((left, 14), "target", anchor="start", bold=True)
        picture.text((left, 36), "1 for the next token", "soft", 12, "start")
        names(left, top)
        columns(left, top, wide)
        picture.grid(left, top, np.eye(_ROWS), "purple", (wide, row), digits=0)
        if picture.narrow:
            x, y = label - 4, top + row * _ROWS + 104
            cell = 37
        else:
            x, y = left + cell * _ROWS + label + 12, top
        picture.text((x, y - 70), "model", anchor="start", bold=True)
        picture.text((x, y - 48), "probabilities, sum 1", "soft", 12, "start")
        names(x, y)
        columns(x, y, cell, ("rest",))
        picture.grid(x, y, p, "brown", (cell, row), digits=2)
        end = x + cell * (_ROWS + 1) + 48
        picture.text((end, y - 16), "−log p", size=12, anchor="end", bold=True)
        for i, loss in enumerate(losses):
            picture.text((end, y + row * (i + 0.5)), f"{loss:.2f}", size=13, anchor="end")

    said = ", ".join(
        f"{word} {share:.2f}" for word, share in zip(following, np.diagonal(p), strict=True)
    )
    return Picture(
        "Two tables with one row per position of the German translation. In the target, each row "
        "has a 1 at the token that comes next and 0 elsewhere. In the model's table, the "
        f"probabilities of these tokens are {said}; a last column has the probability of all "
        "other tokens. Beside each row is the negative logarithm of the right token's probability.",
        draw,
        (684, 278),
        narrow=(372, 570),
    )
