"""Picture of chapter 22: where "it" looks."""

from functools import cache

import numpy as np

from transformer.inference.translator import Translator
from transformer_book.drawing import Drawing, Picture
from transformer_book.pictures import SENTENCE


@cache
def _from_it() -> tuple[list[str], dict[str, np.ndarray]]:
    """Return the words of the running sentence, and each encoder head's weights from "it"."""
    translator = Translator.from_pretrained("tatoeba-en-de")
    found = translator.attention(SENTENCE, "")
    words: list[str] = []
    place = []  # the word of each token
    for token in found.source_tokens:
        if token.startswith("▁") or not words or token in (".", "<eos>"):
            words.append(token.strip("▁").replace("<eos>", "(end)"))
        else:
            words[-1] += token
        place.append(len(words) - 1)
    join = np.eye(len(words))[place]  # (tokens, words)
    it = words.index("it")
    weights = found.encoder[:, :, place.index(it)] @ join
    return words, {f"{i + 1}.{j + 1}": weights[i, j] for i, j in np.ndindex(weights.shape[:2])}


def where_it_looks() -> Picture:
    """Draw where "it" looks in four heads of the shipped model's encoder."""
    words, heads = _from_it()
    animal, it = words.index("animal"), words.index("it")

    def most(place: int) -> str:
        return max(heads, key=lambda name: float(heads[name][place]))

    best = most(animal)
    shown = (
        (most(it + 1), it + 1, "the word after", "blue"),
        (most(it - 1), it - 1, "the word before", "green"),
        (most(len(words) - 1), len(words) - 1, "the end", "brown"),
        (best, animal, f"“animal” gets {heads[best][animal]:.2f}", "purple"),
    )

    def draw(picture: Drawing) -> None:
        row = 25
        for number, (name, _, what, colour) in enumerate(shown):
            weights = heads[name]
            x, y = 174 * number, 0
            if picture.narrow:
                x, y = 190 * (number % 2), 396 * (number // 2)
            picture.text((x + 80, y + 12), f"head {name}", colour, bold=True)
            picture.text((x + 80, y + 32), what, "soft", 13)
            at = [y + 60 + row * i for i in range(len(words))]
            for i, word in enumerate(words):
                lit = {it: "query", animal: "key"}.get(i)
                picture.text((x + 64, at[i]), word, lit or "ink", 13, "end", bold=bool(lit))
            for i in np.argsort(weights):
                if i == it or weights[i] < 0.02:
                    continue
                far = x + 74 + 14 + 8 * abs(int(i) - it)  # bends further for words further away
                points = [
                    ((1 - t) ** 2 * (x + 72) + 2 * t * (1 - t) * far + t**2 * (x + 72),
                     (1 - t) * at[it] + t * at[i])
                    for t in np.linspace(0, 1, 17)
                ]  # fmt: skip
                picture.arrow(*points, colour=colour, tip=False, width=1 + 7 * float(weights[i]))
            for i in {int(weights.argmax()), animal}:
                share = f"{weights[i]:.2f}".lstrip("0")
                faint = weights[i] < 0.02  # no arc to write beside
                beside = 80 if faint else 88 + 4 * abs(i - it)
                height = at[i] if faint else (at[i] + at[it]) / 2
                picture.text((x + beside, height), share, colour, 12, "start", bold=True)

    return Picture(
        "The running sentence four times, in a column, with arcs from “it” to the words it "
        "attends to. "
        + " ".join(
            f"Head {name}: {heads[name][place]:.2f} to “{words[place]}”, {what}."
            for name, place, what, _ in shown[:3]
        )
        + f" Head {best}, which gives “animal” more weight than the other heads do: "
        f"{heads[best][animal]:.2f} to “animal”, at most {heads[best].max():.2f} to a word.",
        draw,
        (688, 376),
        narrow=(372, 772),
    )
