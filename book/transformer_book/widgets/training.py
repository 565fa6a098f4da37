"""Explorers of training: the target of label smoothing and the schedule of the learning rate."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from matplotlib.figure import Figure
from torch import Tensor

from transformer_book.palette import COLOURS
from transformer_book.widgets.base import Explorer


class TargetExplorer(Explorer):
    """Predicted probabilities beside the smoothed target, with sliders for position and epsilon."""

    kind = "target-explorer"
    parts = ("facts.css",)
    size = (6.4, 3.0)

    def __init__(
        self,
        logits: Float[Tensor, "T V"],
        labels: Int[Tensor, "T_too"],
        pieces: Sequence[str],
        step: int = 0,
        epsilon: int | float = 0.1,
        shown: int = 5,
    ):
        if len(labels) != len(logits):
            raise ValueError(f"labels must have {len(logits)} entries, got {len(labels)}")
        self.step, self.epsilon, self.vocabulary = step, epsilon, logits.size(1)
        log_p = logits.double().log_softmax(dim=-1)
        self.mean_log_p = log_p.mean(dim=1).tolist()
        self.tokens: list[list[str]] = []
        self.log_p: list[list[float]] = []
        for row, label in zip(log_p, labels.tolist(), strict=True):
            best = [i for i in row.topk(shown).indices.tolist() if i != label]
            chosen = [label, *best[: shown - 1]]
            self.tokens.append([pieces[i] for i in chosen])
            self.log_p.append(row[chosen].tolist())
        self.alt = (
            f"Probabilities of the next token and their target. The right token, "
            f"“{self.tokens[step][0]}”, has {math.exp(self.log_p[step][0]):.2f}, its target is "
            f"{self.target(epsilon)[0]:.2f}. The loss is {self.loss(step, 0):.2f} without "
            f"smoothing and {self.loss(step, epsilon):.2f} with {epsilon}; the minimum is "
            f"{self.floor(epsilon):.2f}."
        )

    def target(self, epsilon: int | float) -> tuple[float, float]:
        """Return the target of the right token and of any other; uniform over the vocabulary."""
        share = epsilon / self.vocabulary
        return 1 - epsilon + share, share

    def loss(self, step: int, epsilon: int | float) -> float:
        """Return the smoothed cross-entropy at one position, in nats."""
        return -(1 - epsilon) * self.log_p[step][0] - epsilon * self.mean_log_p[step]

    def floor(self, epsilon: int | float) -> float:
        """Return the entropy of the target, in nats: the minimum of the loss."""
        right, other = self.target(epsilon)
        rest = (self.vocabulary - 1) * other * math.log(other) if other else 0.0
        return -right * math.log(right) - rest

    def payload(self) -> dict[str, Any]:
        """Collect tokens and the logarithms of their probabilities."""
        return {
            "title": "Prediction and target",
            "tokens": self.tokens,
            "logP": [[round(value, 4) for value in row] for row in self.log_p],
            "meanLogP": [round(value, 4) for value in self.mean_log_p],
            "vocabulary": self.vocabulary,
            "step": self.step,
            "epsilon": self.epsilon,
        }

    def draw(self, figure: Figure) -> None:
        """Draw the first position at the first epsilon."""
        axes = figure.subplots()
        p = np.exp(self.log_p[self.step])
        right, other = self.target(self.epsilon)
        q = [right] + [other] * (len(p) - 1)
        names = [*self.tokens[self.step], "all others"]
        places = np.arange(len(names))
        for shift, shares, colour, name in (
            (-0.19, [*p, 1 - p.sum()], "brown", "predicted"),
            (0.19, [*q, 1 - sum(q)], "purple", "target"),
        ):
            axes.barh(places + shift, shares, 0.36, color=COLOURS[colour], label=name)
        axes.set_yticks(places, names)
        axes.set(ylim=(len(names) - 0.5, -0.5), xlim=(0, 1), xlabel="probability")
        axes.legend()
        axes.set_title(f"Smoothing {self.epsilon}")


#: Values of the schedule's sliders.
SIZES = (64, 128, 256, 512, 1024, 2048)
WARMUPS = (1, 100, 400, 1000, 2000, 4000, 8000, 16_000, 40_000)
FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)


class ScheduleExplorer(Explorer):
    """The learning rate of Eq. (3) over the steps, with sliders for its three numbers."""

    kind = "schedule-explorer"
    parts = ("facts.css",)
    size = (6.4, 3.2)
    alt = (
        "The learning rate of the paper's base model over 20,000 steps, on linear axes. It rises "
        "linearly to 0.0007 at step 4,000 and then falls with the inverse square root "
        "of the step. With d_model = 1,024 the whole curve is lower by the factor 0.71; with a "
        "warm-up of 1,000 steps the peak is twice as high, and the curve after step 4,000 is the "
        "same."
    )

    def rates(
        self,
        steps: Float[np.ndarray, "n"] | Int[np.ndarray, "n"],
        d_model: int = 512,
        warmup: int = 4000,
        factor: int | float = 1.0,
    ) -> Float[np.ndarray, "n"]:
        """Return Eq. (3) at some steps."""
        steps = np.asarray(steps, dtype=float)
        return factor * d_model**-0.5 * np.minimum(steps**-0.5, steps * warmup**-1.5)

    def payload(self) -> dict[str, Any]:
        """Collect the values of the sliders."""
        return {
            "title": "The learning rate of Eq. (3)",
            "sizes": list(SIZES),
            "warmups": list(WARMUPS),
            "factors": list(FACTORS),
        }

    def draw(self, figure: Figure) -> None:
        """Draw the rates of base, of big, and of base with a shorter warm-up."""
        axes = figure.subplots()
        steps = np.linspace(1, 20_000, 800)
        for name, colour, settings in (
            ("base: d_model 512, warm-up 4,000", "purple", (512, 4000)),
            ("d_model 1,024", "brown", (1024, 4000)),
            ("warm-up 1,000", "grey", (512, 1000)),
        ):
            axes.plot(steps, self.rates(steps, *settings), color=COLOURS[colour], label=name)
        axes.set(xlabel="step", ylabel="learning rate", ylim=(0, 1.5e-3), xlim=(0, 20_000))
        axes.legend()
