"""The next token of a translation: logits, a temperature, probabilities."""

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from matplotlib.figure import Figure
from torch import Tensor

from transformer_book.palette import COLOURS
from transformer_book.widgets.base import Explorer

#: Temperatures of the slider: from a quarter to four.
TEMPERATURES = tuple(2 ** (i / 4) for i in range(-8, 9))


class NextTokenExplorer(Explorer):
    """Probabilities of the likeliest next tokens, with sliders for the step and the temperature."""

    kind = "next-token-explorer"
    size = (6.4, 2.9)

    def __init__(
        self,
        logits: Float[Tensor, "T V"],
        pieces: Sequence[str],
        written: Sequence[str],  # before each step
        step: int = 0,
        shown: int = 7,
    ):
        if len(written) != len(logits):
            raise ValueError(f"written must have {len(logits)} texts, got {len(written)}")
        self.logits, self.written, self.step, self.shown = logits, list(written), step, shown
        self.top = logits.topk(shown)
        self.tokens = [[pieces[i] for i in row] for row in self.top.indices.tolist()]
        best = self.probabilities(step, 1.0)
        self.alt = (
            f"After “{self.written[step]}” the likeliest next token is “{self.tokens[step][0]}” "
            f"with a probability of {best[0]:.2f}; all tokens that are not shown have "
            f"{best[-1]:.2f} together. At a temperature of 4 the latter have "
            f"{self.probabilities(step, 4.0)[-1]:.2f}."
        )

    def probabilities(self, step: int, temperature: int | float) -> Float[Tensor, "shown_and_rest"]:
        """Return the probabilities of the tokens shown, and of all others together."""
        every = (self.logits[step].double() / temperature).softmax(dim=-1)
        shown = every[self.top.indices[step]]
        return torch.cat([shown, (1 - shown.sum()).clamp(min=0)[None]])

    def payload(self) -> dict[str, Any]:
        """Collect tokens, logits, and the probabilities at every temperature."""
        return {
            "title": "Which token comes next?",
            "written": self.written,
            "tokens": self.tokens,
            "logits": [[round(value, 2) for value in row] for row in self.top.values.tolist()],
            "temperatures": [round(temperature, 3) for temperature in TEMPERATURES],
            "shares": [
                [
                    [round(share, 4) for share in self.probabilities(step, warmth).tolist()]
                    for warmth in TEMPERATURES
                ]
                for step in range(len(self.written))
            ],
            "step": self.step,
        }

    def draw(self, figure: Figure) -> None:
        """Draw the probabilities of the first step shown, at temperature 1."""
        axes = figure.subplots()
        names = [*self.tokens[self.step], "all others"]
        shares = self.probabilities(self.step, 1.0).numpy()
        colours = [COLOURS["purple"]] * self.shown + [COLOURS["grey"]]
        axes.barh(range(len(names)), shares, color=colours)
        axes.set_yticks(range(len(names)), names)
        axes.set(ylim=(len(names) - 0.5, -0.5), xlim=(0, 1), xlabel="probability")
        axes.set_title(f"After “{self.written[self.step]}”")
