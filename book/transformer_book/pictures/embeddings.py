"""Picture of chapter 10: one matrix with three jobs."""

from functools import cache

import numpy as np
import torch

from transformer.inference.translator import Translator
from transformer_book.drawing import Drawing, Picture
from transformer_book.pictures import SENTENCE

WRITTEN = "Das Tier"  # of the translation
_ROWS = ("animal", "street", "tired", "it", "Tier", "Straße", "überqu", "nicht", "es")
_NUMBERS = 12


@cache
def _measured() -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Return rows of the shipped model's matrix, the decoder's last vector, and its logits."""
    translator = Translator.from_pretrained("tatoeba-en-de")
    model, tokenizer = translator.model.eval(), translator.tokenizer
    pieces = tokenizer.tokens(list(range(tokenizer.vocab_size)))
    ids = [pieces.index(f"▁{word}") for word in _ROWS]
    end, begin = model.config.eos_id, model.config.bos_id
    with torch.no_grad():
        source = torch.tensor([[*tokenizer.encode(SENTENCE), end]])
        target = torch.tensor([[begin, *tokenizer.encode(WRITTEN)]])
        state = model.decoder_states(target, model.encode(source), source)[0, -1]
        matrix = model.output_weight.detach()
        logits = matrix @ state
    assert pieces[int(logits.argmax())] == "▁überqu"
    return matrix[ids, :_NUMBERS].numpy(), state[:_NUMBERS].numpy(), logits[ids].tolist()


def three_jobs() -> Picture:
    """Draw the shipped model's shared matrix as source embedding, target embedding and output."""
    rows, state, logits = _measured()

    def draw(picture: Drawing) -> None:
        if picture.narrow:
            wide, names, cell, bar = 86, 62, 6, 62
        else:
            wide, names, cell, bar = 168, 84, 13, 150
        row, top = 30, 78
        left = wide + 22 + names
        right = left + cell * _NUMBERS
        middle = [top + row * (i + 0.5) for i in range(len(_ROWS))]
        picture.text((left + cell * _NUMBERS / 2, 14), "E", bold=True)
        picture.text((left + cell * _NUMBERS / 2, 34), "8,000 × 256", "soft", 12)
        picture.text((left + cell * _NUMBERS / 2, 52), "9 × 12 here", "soft", 12)
        for i, word in enumerate(_ROWS):
            lit = {"animal": "purple", "Tier": "brown", "überqu": "ink"}.get(word)
            picture.text((left - 8, middle[i]), word, lit or "ink", 13, "end", bold=bool(lit))
        picture.grid(left, top, rows, "ink", (cell, row))
        for word, colour, number, stack in (
            ("animal", "purple", "1", "encoder"), ("Tier", "brown", "2", "decoder"),
        ):  # fmt: skip
            y, width = middle[_ROWS.index(word)], cell * _NUMBERS
            picture.box(wide + 4, y - row / 2 + 1, names + 16, row - 2, edge=colour, fill="pale")
            picture.text((left - 8, y), word, colour, 13, "end", bold=True)
            picture.box(left, y - row / 2, width, row, edge=colour, fill="none", corner=2)
            picture.text((wide / 2, y - 50), f"{number}: {word}", colour, bold=True)
            box = picture.box(0, y - 34, wide, 26, stack, edge=colour)
            picture.text((wide / 2, y + 20), "row × 16", "soft", 12)
            picture.arrow((wide + 4, y), (wide / 2, y), box.bottom, colour=colour, width=2)
        start = right + 12
        picture.text((start, 14), "3: next token", "ink", 13, "start", bold=True)
        picture.strip(start + 16, 26, state, "ink", ((bar + 16) / _NUMBERS, 16))
        picture.text((start, 34), "h", anchor="start", bold=True)
        picture.text((start, 60), "logit = h · row", "soft", 12, "start")
        largest = max(map(abs, logits))
        zero = start + bar * 0.3
        for y, value in zip(middle, logits, strict=True):
            best = value == max(logits)
            length = abs(value) / largest * bar * 0.66
            at = zero if value > 0 else zero - length
            picture.box(at, y - 8, length, 16, "", "ink" if best else "hidden", corner=2)
            picture.text((start + bar + 40, y), f"{value:.1f}", "ink", 13, "end", bold=best)
        picture.arrow((zero, top - 4), (zero, top + row * len(_ROWS) + 4), tip=False)

    return Picture(
        "A matrix with one row per token. On the left, the row of the source token “animal” goes "
        "to the encoder and the row of the German token “Tier” to the decoder, both multiplied by "
        "16. On the right, the dot product of the decoder's last vector h with every row is taken; "
        "that with “überqu” is the largest.",
        draw,
        (660, 360),
        narrow=(372, 360),
    )
