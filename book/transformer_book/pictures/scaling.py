"""Picture of chapter 4: one query with three divisors."""

from functools import lru_cache

import torch
from torch import Tensor

from transformer.inference.translator import Translator
from transformer_book.drawing import Drawing, Picture
from transformer_book.pictures import SENTENCE

LAYER, HEAD = 1, 0  # of the encoder, counted from 0


@lru_cache(maxsize=1)
def scores_of_it() -> tuple[list[str], Tensor]:
    """Return the tokens of the sentence, and the scores of "it" in a head of the shipped model."""
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
                    picture.box(x, y, room * weight, 20, fill="purple", corner=3)
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
