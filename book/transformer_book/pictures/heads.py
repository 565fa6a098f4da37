"""Picture of chapter 22: where the pronoun looks, in the toy translator and the shipped models."""

from functools import cache
from typing import NamedTuple

import numpy as np

from transformer.data import toy
from transformer.inference.translator import Translator
from transformer_book.drawing import Drawing, Picture
from transformer_book.toy_translator import trained, weights_at_pronoun

SENTENCES = {"tired": toy.TIRED, "wide": toy.WIDE}
WORDS = [*toy.split(toy.TIRED.english)[:-2], "tired / wide", ".", "(end)"]
ANIMAL, STREET, IT = (WORDS.index(word) for word in ("animal", "street", "it"))


class Looks(NamedTuple):
    """Weights to the words of the sentence, (heads, words), and the pronoun that is written."""

    weights: dict[str, np.ndarray]
    written: dict[str, str]
    names: list[str]

    def best(self) -> int:
        """Find the head that moves most from *animal* to *street*."""
        tired, wide = self.weights["tired"], self.weights["wide"]
        return int((tired - wide)[:, [ANIMAL, STREET]].dot([1, -1]).argmax())


def _in_toy() -> Looks:
    found = {word: weights_at_pronoun(trained(), each) for word, each in SENTENCES.items()}
    weights = {word: np.concatenate([*layers.values()]) for word, layers in found.items()}
    names = [f"{layer[:7]} {int(layer[-1]) + 1}.{i}" for layer in found["tired"] for i in (1, 2)]
    names = [name.replace("decoder", "cross") for name in names]
    return Looks(weights, {"tired": "es", "wide": "sie"}, names)


def _in_shipped(model: str) -> Looks:
    translator, weights, written = Translator.from_pretrained(model), {}, {}
    for word, sentence in SENTENCES.items():
        found = translator.attention(sentence.english)
        place: list[int] = []
        for token in found.source_tokens:  # the word of each
            place.append(place[-1] + (token[0] in "▁.<") if place else 0)
        plain = [token.strip("▁") for token in found.predicted_tokens]
        row = next(i for i, token in enumerate(plain) if token in ("es", "sie", "il", "elle"))
        rows = [found.encoder[:, :, place.index(IT)], found.cross[:, :, row]]
        weights[word] = np.stack(rows).reshape(-1, len(place)) @ np.eye(len(WORDS))[place]
        written[word] = plain[row]
    layers, heads = found.cross.shape[:2]
    kinds = np.ndindex(2, layers, heads)
    return Looks(
        weights, written, [f"{('encoder', 'cross')[k]} {i + 1}.{j + 1}" for k, i, j in kinds]
    )


@cache
def models() -> dict[str, Looks]:
    """Return where the pronoun looks in each model."""
    return {
        "toy translator": _in_toy(),
        "English-German": _in_shipped("tatoeba-en-de"),
        "English-French": _in_shipped("tatoeba-en-fr"),
    }


def where_it_looks() -> Picture:
    """Draw where the pronoun looks in the head of each model that moves most."""

    def draw(picture: Drawing) -> None:
        step = 24
        for number, (model, looks) in enumerate(models().items()):
            x, y = (0, 384 * number) if picture.narrow else (232 * number, 0)
            picture.text((x + 112, y + 12), model, bold=True)
            picture.text((x + 112, y + 32), f"head {looks.names[looks.best()]}", "soft", 13)
            height = [y + 60 + step * i for i in range(len(WORDS))]
            for i, word in enumerate(WORDS):
                lit = "key" if i in (ANIMAL, STREET) else "ink"
                picture.text((x + 112, height[i] + 4), word, lit, 13, bold=lit == "key")
            for side, (word, name) in zip((-1, 1), looks.written.items(), strict=True):
                end, middle = (x + 112 + side * 76, height[6])
                anchor = "start" if side > 0 else "end"
                picture.text((end - side * 6, middle - 18), word, "soft", 12, anchor)
                picture.text((end - side * 6, middle + 4), name, "query", 15, anchor, bold=True)
                for i, weight in enumerate(looks.weights[word][looks.best()]):
                    if weight >= 0.04:
                        start = (x + 112 + side * (8 + 3.6 * len(WORDS[i])), height[i])
                        line = ((end - side * 10, middle), start)
                        picture.arrow(*line, colour="purple", tip=False, width=8 * float(weight))

    told = []
    for model, looks in models().items():
        best = looks.best()
        for word, name in looks.written.items():
            animal, street = looks.weights[word][best][[ANIMAL, STREET]]
            told.append(
                f"{model}, head {looks.names[best]}, too {word}: {name}, {animal:.2f} to "
                f"“animal” and {street:.2f} to “street”."
            )
    text = "Lines from the pronoun to the words of the sentence, for three models. "
    return Picture(text + " ".join(told), draw, (688, 372), narrow=(224, 1144))
