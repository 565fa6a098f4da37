"""Translations of the same sentences at many steps of one training run."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure

from transformer_book.palette import ROLES
from transformer_book.pictures.after.full_model import kept_words
from transformer_book.widgets.base import Explorer


class LearningExplorer(Explorer):
    """A slider over the steps of a training run, with the translations of some sentences.

    Args:
        sources: the sentences.
        rows: with "step" and "translations", by ascending steps.
        scores: BLEU on validation sentences, by the steps at which it was measured.
        step: place of the row that is shown first.
        final: the translations whose words are marked, such as those of averaged weights; None for
            those of the last row.
    """

    kind = "learning-explorer"
    size = (6.4, 3.4)

    def __init__(
        self,
        sources: Sequence[str],
        rows: Sequence[dict[str, Any]],
        scores: Mapping[int, float] | None = None,
        step: int = 0,
        final: Sequence[str] | None = None,
    ):
        counts = {len(row["translations"]) for row in rows}
        if counts != {len(sources)}:
            raise ValueError(f"each row must have {len(sources)} translations, got {counts}")
        if not 0 <= step < len(rows):
            raise ValueError(f"step must be one of {len(rows)} rows, got {step}")
        self.sources, self.rows, self.step = list(sources), list(rows), step
        self.scores = {int(at): round(float(score), 1) for at, score in (scores or {}).items()}
        last = rows[-1]["translations"] if final is None else final
        self.words = [
            [kept_words(text, end) for text, end in zip(row["translations"], last, strict=True)]
            for row in rows
        ]
        counts_kept = [sum(kept for text in texts for _, kept in text) for texts in self.words]
        whole = sum(len(text.split()) for text in last)
        self.shares = [count / max(1, whole) for count in counts_kept]
        first = rows[step]
        self.alt = (
            f"The translations of {len(sources)} sentences at {len(rows)} steps of one training "
            f"run, up to step {rows[-1]['step']:,}. At step {first['step']:,} the first is "
            f"“{first['translations'][0] or 'empty'}”; the words of “{last[0]}” are "
            f"marked. Of such words there are {self.shares[0]:.0%} in the first row and "
            f"{self.shares[len(rows) // 2]:.0%} in the middle one."
        )

    def payload(self) -> dict[str, Any]:
        """Collect the words of every translation, and which are part of the final one."""
        return {
            "title": "Four sentences during the training of one model",
            "sources": self.sources,
            "steps": [row["step"] for row in self.rows],
            "words": [[[word for word, _ in text] for text in texts] for texts in self.words],
            "kept": [[[int(k) for _, k in text] for text in texts] for texts in self.words],
            "shares": [round(share, 3) for share in self.shares],
            "scores": {str(at): score for at, score in self.scores.items()},
            "step": self.step,
        }

    def draw(self, figure: Figure) -> None:
        """Draw the share of the final translations' words by step."""
        axes = figure.subplots()
        axes.plot([row["step"] for row in self.rows], self.shares, "o-", color=ROLES["value"])
        axes.set(xlabel="step", ylim=(0, 1.05))
        axes.set_title("Words of the final translations")
