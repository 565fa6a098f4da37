"""What BLEU counts in one sentence: the n-grams of a translation that its reference has."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from transformer.inference.significance import ORDER, sentence_counts
from transformer_book.palette import COLOURS, INK
from transformer_book.widgets.base import Explorer


class OverlapExplorer(Explorer):
    """Translations of one sentence to choose from, cut off where the reader likes."""

    kind = "overlap-explorer"
    size = (6.4, 2.6)

    def __init__(self, reference: Sequence[str], translations: Mapping[str, Sequence[str]]):
        texts = [reference, *translations.values()]
        if not translations or min(map(len, texts)) < ORDER:
            raise ValueError(
                f"one translation or more is needed, and {ORDER} tokens in each text, got "
                f"{len(translations)} translations"
            )
        self.reference = list(reference)
        self.translations = {name: list(tokens) for name, tokens in translations.items()}
        scores = ", ".join(f"{name} {self.score(name):.0f}" for name in self.translations)
        self.alt = (
            f"A reference, {' '.join(self.reference)}, and translations with the runs of one to "
            f"four tokens that they share with it. BLEU of the single sentences: {scores}."
        )

    def score(self, name: str, kept: int | None = None) -> float:
        """Return the BLEU of one sentence, without smoothing."""
        tokens = self.translations[name][:kept]
        texts = [" ".join(tokens)], [" ".join(self.reference)]
        c, r, *rest = sentence_counts(*texts, tokenize="none")[0]
        shares = np.divide(rest[:ORDER], rest[ORDER:])
        brevity = min(1.0, float(np.exp(1 - r / c)))
        return float(100 * brevity * np.prod(shares) ** (1 / ORDER))

    def payload(self) -> dict[str, Any]:
        """Collect the texts."""
        return {
            "title": "What BLEU counts in one sentence",
            "reference": self.reference,
            "translations": [[name, tokens] for name, tokens in self.translations.items()],
        }

    def draw(self, figure: Figure) -> None:
        """Draw the scores of all translations as bars."""
        axes = figure.subplots()
        names = list(self.translations)
        places = range(len(names))
        scores = [self.score(name) for name in names]
        axes.barh(places, scores, color=COLOURS["purple"], height=0.6)
        for place, score in zip(places, scores, strict=True):
            axes.text(score + 1.5, place, f"{score:.0f}", va="center", color=INK)
        axes.set_yticks(places, names)
        axes.set(ylim=(len(names) - 0.5, -0.5), xlim=(0, 108), xlabel="BLEU of the sentence")
