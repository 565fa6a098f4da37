"""Pictures of chapters 14 and 15: targets and predictions, and one training step."""

from functools import cache

import numpy as np
import torch

from transformer.inference.translator import Translator
from transformer_book.drawing import Drawing, Number, Picture
from transformer_book.pictures import SENTENCE

_ROWS = 6  # tokens of the translation in the picture


@cache
def _predicted() -> tuple[list[str], list[str], np.ndarray]:
    """Return the given and the next token of each position, and the shipped model's probabilities.

    The columns are the six next tokens and, last, the sum of all others.
    """
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
        picture.grid(left, top, np.eye(_ROWS), "key", (wide, row), digits=0)
        if picture.narrow:
            x, y = label - 4, top + row * _ROWS + 104
            cell = 37
        else:
            x, y = left + cell * _ROWS + label + 12, top
        picture.text((x, y - 70), "model", anchor="start", bold=True)
        picture.text((x, y - 48), "probabilities, sum 1", "soft", 12, "start")
        names(x, y)
        columns(x, y, cell, ("rest",))
        picture.grid(x, y, p, "value", (cell, row), digits=2)
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


def one_step() -> Picture:
    """Draw one training step, from the parts of a batch to the new parameters and their mean."""
    steps = np.linspace(1, 20_000, 60)
    rate = np.minimum(steps**-0.5, steps * 4000**-1.5) * 4000**0.5  # Eq. (3), peak 1

    def draw(picture: Drawing) -> None:
        if picture.narrow:
            wide, high = 150, 62
            left, right = 2, 202
            place = {
                "batch": (left, 30), "model": (right, 30), "loss": (right, 152),
                "gradient": (left, 152), "adam": (left, 274), "rate": (right, 274),
                "parameters": (right, 396), "mean": (left, 396),
            }  # fmt: skip
        else:
            wide, high = 138, 62
            left, second, third, right = (1 + 181 * i for i in range(4))
            place = {
                "batch": (left, 30), "model": (second, 30), "loss": (third, 30),
                "gradient": (right, 30), "adam": (right, 176), "rate": (third, 176),
                "parameters": (second, 176), "mean": (left, 176),
            }  # fmt: skip
        name = {"batch": "parts of a batch", "model": "model", "loss": "loss, smoothed",
                "gradient": "gradient", "adam": "Adam", "rate": "× learning rate",
                "parameters": "parameters", "mean": "mean of the last"}  # fmt: skip
        note = {"batch": "25,000 tokens", "model": "dropout 0.1", "loss": "smoothing 0.1",
                "gradient": "sum / tokens", "adam": "0.9 and 0.98", "rate": "Eq. (3)",
                "parameters": "saved every 10 min", "mean": "5 checkpoints"}  # fmt: skip
        number = {"batch": 1, "model": 2, "adam": 3, "rate": 4, "mean": 5}
        area = {}
        for key, (x, y) in place.items():
            lit = key in number
            area[key] = picture.box(x, y, wide, high, edge="key" if lit else "rule")
            picture.text((x + wide / 2, y + 17), name[key], size=13, bold=True)
            picture.text((x + wide / 2, y + high + 14), note[key], "soft", 12)
            if lit:
                picture.text((x + 2, y - 12), f"{number[key]}", "key", 15, "start", bold=True)
        for key, count, colour in (("batch", 4, "query"), ("mean", 5, "value")):
            x, y = place[key]
            width = (wide - 32 - 4 * (count - 1)) / count
            for i in range(count):
                picture.box(x + 16 + i * (width + 4), y + 32, width, 18, "", colour, corner=3)
        x, y = place["gradient"]
        picture.text((x + wide / 2, y + 42), "g + g + g + g", "soft", 13)
        x, y = place["model"]
        cells = np.array([0.6, 0.9, 0, 0.4, 0.8, 0.7, 0.5, 0, 0.9, 0.6])
        picture.strip(x + 16, y + 32, cells, "key", ((wide - 32) / 10, 18))
        x, y = place["loss"]
        picture.text((x + wide / 2, y + 42), "−Σ q log p", "soft", 13)
        x, y = place["adam"]
        picture.text((x + wide / 2, y + 42), "m / √v", "soft", 13)
        x, y = place["rate"]
        curve = [(x + 16 + (wide - 32) * s / 20_000, y + 54 - 24 * r)
                 for s, r in zip(steps, rate, strict=True)]  # fmt: skip
        picture.arrow(*curve, colour="key", width=2, tip=False)
        x, y = place["parameters"]
        picture.strip(x + 16, y + 32, np.sin(np.arange(10.0)), "ink", ((wide - 32) / 10, 18))
        if picture.narrow:
            picture.arrow(area["batch"].right, area["model"].left)
            picture.arrow((area["model"].bottom[0], 114), area["loss"].top)
            picture.arrow(area["loss"].left, area["gradient"].right)
            picture.arrow((area["gradient"].bottom[0], 236), area["adam"].top)
            picture.arrow(area["adam"].right, area["rate"].left)
            picture.arrow((area["rate"].bottom[0], 358), area["parameters"].top)
            picture.arrow(area["parameters"].left, area["mean"].right)
            start, end = area["parameters"].right, area["model"].right
            aside = right + wide + 16
            picture.arrow(start, (aside, start[1]), (aside, end[1]), end)
        else:
            for one, other in (("batch", "model"), ("model", "loss"), ("loss", "gradient")):
                picture.arrow(area[one].right, area[other].left)
            picture.arrow((area["gradient"].bottom[0], 116), area["adam"].top)
            for one, other in (("adam", "rate"), ("rate", "parameters"), ("parameters", "mean")):
                picture.arrow(area[one].left, area[other].right)
            picture.arrow(area["parameters"].top, (area["model"].bottom[0], 116))

    return Picture(
        "A loop. The parts of a batch go through the model, in which dropout sets some numbers to "
        "zero, to the smoothed loss. The gradients of the parts are added up. Adam divides their "
        "running mean by the root of their running mean square, the learning rate multiplies the "
        "result, and the parameters change. The last checkpoints are averaged.",
        draw,
        (684, 260),
        narrow=(372, 480),
    )
